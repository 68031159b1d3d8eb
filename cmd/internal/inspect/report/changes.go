package report

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
)

// Changes is how a generation differs from an earlier one.
type Changes struct {
	Before  int            `json:"before"` // the earlier generation
	After   int            `json:"after"`
	Columns []ColumnChange `json:"columns"` // that differ, in the order of the later generation, dropped ones last
	Records RecordChanges  `json:"records"`
	Fields  []FieldChange  `json:"statistics"` // of columns that differ, and of all if the records differ
	Steps   []Step         `json:"steps"`      // the newest first
	Pruned  int            `json:"pruned"`     // how many generations in between are no longer kept

	path  string      // of the earlier generation
	pairs [][2]string // the names of all columns, earlier and later; "" where one is not there
}

// ColumnChange is a column that is not the same in both generations.
type ColumnChange struct {
	Name   string `json:"name"`
	Change string `json:"change"` // "added", "dropped", "renamed from x", "values", "type: uint8 () to float32 ()", ...
}

// RecordChanges counts records, without those that are deleted in a generation.
type RecordChanges struct {
	Before   int64 `json:"before"`
	After    int64 `json:"after"`
	Added    int64 `json:"added"`
	Deleted  int64 `json:"deleted"`
	Restored int64 `json:"restored"`
}

func (r RecordChanges) any() bool { return r.Added+r.Deleted+r.Restored > 0 }

// FieldChange is the statistics of a column in both generations; nil where it is not there.
type FieldChange struct {
	Name   string            `json:"name"`
	Before *stats.FieldStats `json:"before"`
	After  *stats.FieldStats `json:"after"`
}

// Step is a generation after the earlier one, and how it was made.
type Step struct {
	Generation int    `json:"generation"`
	Time       string `json:"time"` // UTC
	Done       string `json:"done"`
	By         string `json:"by"` // the command or call
}

// earlier returns the folder of the dataset at path and the generation that --against names: a number, a tag, or
// the path of the dataset with one of them.
func earlier(path, against string) (folder, generation string, err error) {
	folder = layout.Folder(path)
	other, generation, named := layout.SplitGeneration(against)
	switch {
	case named && sameFile(other, folder):
		return folder, generation, nil
	case !named && layout.IsName(against):
		return folder, against, nil
	}
	return "", "", fmt.Errorf("--against %s: it is not a generation of %s, such as 1 or a tag; to compare two datasets, "+
		"run: %s", shell.Line(against), shell.Line(folder), shell.Penstock("diff", path, against))
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// changesOf compares the manifest of the dataset at path with that of the generation that --against names: the columns
// of names, or all.
func changesOf(path string, m *store.Manifest, against string, names []string) (*Changes, error) {
	folder, generation, err := earlier(path, against)
	if err != nil {
		return nil, err
	}
	old, err := edit.At(folder).Manifest(generation)
	if err != nil {
		return nil, fmt.Errorf("--against %s: %w", shell.Line(against), err)
	}
	if old.Generation >= m.Generation {
		return nil, fmt.Errorf("--against %s: generation %d is not earlier than generation %d of the report; give an "+
			"earlier one; all are listed by: %s", shell.Line(against), old.Generation, m.Generation,
			shell.Penstock("log", folder))
	}
	c := &Changes{Before: old.Generation, After: m.Generation, Columns: []ColumnChange{}, Fields: []FieldChange{},
		Steps: []Step{}, path: fmt.Sprintf("%s@%d", folder, old.Generation)}
	changes, err := dataset.Compare(folder, old, m)
	if err != nil {
		return nil, fmt.Errorf("--against %s: %w", shell.Line(against), err)
	}
	c.Records = RecordChanges{old.Live(), m.Live(), changes.Appended, changes.Deleted, changes.Restored}
	c.compareColumns(old, m, changes.Columns, names)
	return c, c.listSteps(folder)
}

// compareColumns describes the columns that differ: those of names, or all.
func (c *Changes) compareColumns(old, m *store.Manifest, columns []dataset.Column, names []string) {
	for _, of := range columns {
		if names != nil && !slices.Contains(names, cmp.Or(of.After, of.Before)) {
			continue
		}
		c.pairs = append(c.pairs, [2]string{of.Before, of.After})
		text := ""
		switch {
		case of.Before == "":
			text = "added"
		case of.After == "":
			text = "dropped"
		default:
			before, after := old.Schema().Index(of.Before), m.Schema().Index(of.After)
			text = differences(old.Fields[before], m.Fields[after], of.Same)
			if of.Before != of.After {
				text = strings.TrimSuffix("renamed from "+of.Before+"; "+text, "; ")
			}
		}
		if text != "" {
			c.Columns = append(c.Columns, ColumnChange{cmp.Or(of.After, of.Before), text})
		}
	}
}

// differences says how a column that both generations have changed; "" if it did not.
func differences(a, b store.Field, sameValues bool) string {
	var list []string
	if a, b := typeText(a), typeText(b); a != b {
		list = append(list, "type: "+a+" to "+b)
	}
	if !slices.Equal(a.Classes, b.Classes) {
		list = append(list, fmt.Sprintf("classes: %d to %d", len(a.Classes), len(b.Classes)))
	}
	if !reflect.DeepEqual(a.Normalization, b.Normalization) {
		list = append(list, "normalization")
	}
	if !sameValues {
		list = append(list, "values")
	}
	return strings.Join(list, "; ")
}

func typeText(f store.Field) string { return f.DType.String() + " " + dataset.ShapeText(f.Spec) }

// listSteps lists the generations after the earlier one, up to that of the report.
func (c *Changes) listSteps(folder string) error {
	log, err := edit.Log(folder)
	if err != nil {
		return err
	}
	c.Pruned = c.After - c.Before
	for _, e := range log {
		if e.Generation <= c.Before || e.Generation > c.After {
			continue
		}
		c.Pruned--
		step := Step{e.Generation, e.Time.UTC().Format("2006-01-02 15:04:05"), datasetarg.Done(e), ""}
		if e.Change != nil {
			step.By = e.Change.By
		}
		c.Steps = append(c.Steps, step)
	}
	return nil
}

// compareStatistics adds the statistics of columns that differ, or of all if the records differ. Those of the later
// generation are known.
func (c *Changes) compareStatistics(ctx context.Context, after *stats.Stats, opts stats.Options) error {
	differs := func(name string) bool {
		return c.Records.any() || slices.ContainsFunc(c.Columns, func(d ColumnChange) bool {
			return d.Name == name && (!strings.HasPrefix(d.Change, "renamed") || strings.Contains(d.Change, "; "))
		})
	}
	for _, p := range c.pairs {
		name := cmp.Or(p[1], p[0])
		if !differs(name) {
			continue
		}
		change := FieldChange{Name: name}
		if i := slices.IndexFunc(after.Fields, func(f stats.FieldStats) bool { return f.Name == p[1] }); i >= 0 {
			change.After = &after.Fields[i]
		} else if p[1] != "" {
			continue // names of samples, which have no statistics
		}
		if p[0] != "" {
			opts.Fields = []string{p[0]}
			before, err := stats.Compute(ctx, c.path, opts)
			if err != nil {
				return err
			}
			change.Before = &before.Fields[0]
		}
		c.Fields = append(c.Fields, change)
	}
	return nil
}
