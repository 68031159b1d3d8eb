package source

import (
	"errors"
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/shell"
)

// misfit is an array that makes no field, and why.
type misfit struct {
	name string
	err  error
}

// misfits are those of a source.
type misfits []misfit

// wanted returns the error of one that is asked for.
func (m misfits) wanted(list []Wanted) error {
	for _, f := range m {
		for _, w := range list {
			if strings.Trim(w.Column, "/") == strings.Trim(f.name, "/") {
				return fmt.Errorf("%s: %w", f.name, f.err)
			}
		}
	}
	return nil
}

// all returns the errors of all of them, and how to do without: by the names of the others.
func (m misfits) all(others []column) error {
	var errs []error
	for _, f := range m {
		errs = append(errs, fmt.Errorf("%s: %w", f.name, f.err))
	}
	err := errors.Join(errs...)
	if err == nil || len(others) == 0 {
		return err
	}
	var names []string
	for _, c := range others {
		names = append(names, c.field.Origin)
	}
	if flag := shell.Command("--fields", strings.Join(names, ",")); flag != "" {
		return fmt.Errorf("%w; leave out what makes no field: %s", err, flag)
	}
	return fmt.Errorf("%w; leave out what makes no field with --fields", err)
}

// hint is a sentence about those that were left out.
func (m misfits) hint() string {
	var parts []string
	for _, f := range m {
		parts = append(parts, fmt.Sprintf("%s (%v)", f.name, f.err))
	}
	return "left out, as they make no field: " + enumerate(parts, 5)
}

// choose keeps the columns that are wanted, all without such. Misfits that nobody asks for
// matter only where all are wanted.
func (m misfits) choose(columns []column, wanted []Wanted) ([]column, error) {
	err := m.wanted(wanted)
	if err == nil && len(wanted) == 0 {
		err = m.all(columns)
	}
	if err != nil {
		return nil, err
	}
	return selectColumns(columns, wanted)
}
