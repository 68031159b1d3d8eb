package array

import (
	"errors"
	"fmt"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Rejection is an array that cannot become a field, and the reason.
type Rejection struct {
	Name string
	Err  error
}

// Rejections are the arrays of a source that cannot become fields.
type Rejections []Rejection

// Selected returns the error of the first rejected array that the selection names; nil if the selection names no
// rejected array.
func (m Rejections) Selected(list []column.Selection) error {
	for _, f := range m {
		for _, w := range list {
			if strings.Trim(w.Column, "/") == strings.Trim(f.Name, "/") {
				return fmt.Errorf("%s: %w", f.Name, f.Err)
			}
		}
	}
	return nil
}

// All returns the errors of all rejected arrays, and the --fields flag that selects the other arrays.
func (m Rejections) All(others []Column) error {
	var errs []error
	for _, f := range m {
		errs = append(errs, fmt.Errorf("%s: %w", f.Name, f.Err))
	}
	err := errors.Join(errs...)
	if err == nil || len(others) == 0 {
		return err
	}
	return fmt.Errorf("%w; leave out what cannot become a field: %s", err, usual(others))
}

// Hint returns a sentence about the arrays that were left out.
func (m Rejections) Hint() string {
	var parts []string
	for _, f := range m {
		parts = append(parts, fmt.Sprintf("%s (%v)", f.Name, f.Err))
	}
	return "left out, as they cannot become a field: " + source.Enumerate(parts, 5)
}

// choose returns the selected columns, or all columns if the selection is empty. Then rejected arrays are an error,
// as "all" would silently not be all; otherwise they matter only if they are selected.
func (m Rejections) choose(columns []Column, selection []column.Selection) ([]Column, error) {
	err := m.Selected(selection)
	if err == nil && len(selection) == 0 {
		err = m.All(columns)
	}
	if err != nil {
		return nil, err
	}
	return Select(columns, selection)
}
