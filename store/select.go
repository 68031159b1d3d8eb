package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
)

// Select returns the dataset with only the named fields, in that order.
func (d *Dataset) Select(names []string) (*Dataset, error) {
	out := *d
	out.Schema, out.layout.Columns, out.names = Schema{}, nil, nil
	if i := layout.SourceNames(d.Schema.Specs()); i >= 0 && (len(names) != 1 || names[0] != d.Schema.Fields[i].Name) {
		out.names = d.SourceNames()
	}
	places := make(map[string]int, len(d.Schema.Fields)) // positions of the fields that were not selected yet
	for i, f := range d.Schema.Fields {
		places[f.Name] = i
	}
	for k, name := range names {
		i, is := places[name]
		switch {
		case !is && d.Schema.Index(name) < 0:
			return nil, noField(name, d.Schema.names())
		case !is:
			return nil, fmt.Errorf("field %q is asked for twice", name)
		}
		delete(places, name)
		out.Schema.Fields = append(out.Schema.Fields, d.Schema.Fields[i])
		for _, c := range d.layout.ColumnsOf(i) {
			c.Field = k
			out.layout.Columns = append(out.layout.Columns, c)
		}
	}
	if len(out.layout.Columns) == 0 {
		return nil, errors.New("no fields asked for")
	}
	return &out, nil
}

// SourceNames returns a dataset of the field of source names alone, with the records of d, even if the field was not
// selected: errors name a record by it. It is nil if the dataset has no such field.
func (d *Dataset) SourceNames() *Dataset {
	if i := layout.SourceNames(d.Schema.Specs()); i >= 0 {
		names, err := d.Select([]string{d.Schema.Fields[i].Name})
		if err == nil {
			names.names = nil
			return names
		}
	}
	return d.names
}

// WithoutSourceNames returns the dataset without its field of source names, if it has another field.
func (d *Dataset) WithoutSourceNames() *Dataset {
	i := layout.SourceNames(d.Schema.Specs())
	if i < 0 || len(d.Schema.Fields) == 1 {
		return d
	}
	if out, err := d.Select(slices.Delete(d.Schema.names(), i, i+1)); err == nil {
		return out
	}
	return d
}

func noField(name string, known []string) error {
	return layout.WithMark(fmt.Errorf("it has no field %q%s", name, suggest.Hint(name, known)), ErrMissing)
}

// inSplit returns the dataset with only the records of a split, which get the numbers 0, 1, ... in their order in the
// dataset. In an HDF5 file it reads some offsets.
//
// Checksums that also cover records of another split are left out: comparing them would read and blame records that are
// not in the split.
func (d *Dataset) inSplit(name string) (*Dataset, error) {
	split, err := d.findSplit(name)
	if err != nil {
		return nil, err
	}
	out := *d
	out.Split, out.Records, out.layout.Columns = name, split.Records(), make([]layout.Column, len(d.layout.Columns))
	if d.names != nil {
		if out.names, err = d.names.inSplit(name); err != nil {
			return nil, err
		}
	}
	if out.Records == 0 {
		return nil, fmt.Errorf("split %q has no records", name)
	}
	for k, c := range d.layout.Columns {
		cut := &out.layout.Columns[k]
		*cut = layout.Column{Field: c.Field, Part: c.Part, Name: c.Name, Spec: c.Spec, Packed: c.Packed}
		var index *layout.RaggedIndex
		if c.Part != layout.Whole {
			x := layout.NewRaggedIndex(d.layout.Column(c.Field, layout.Offsets), d.layout.Column(c.Field, layout.Values))
			index = &x
		}
		for _, r := range split.Ranges {
			if err := cut.Cut(&c, index, r[0], r[1]); err != nil {
				return nil, err
			}
		}
	}
	return &out, nil
}

func (d *Dataset) findSplit(name string) (Split, error) {
	if d.Manifest == nil {
		return Split{}, layout.WithMark(errors.New("it has no splits"), ErrMissing)
	}
	for _, s := range d.Manifest.Splits {
		if s.Name == name {
			return s, nil
		}
	}
	return Split{}, layout.WithMark(fmt.Errorf("it has no split %q%s", name, suggest.Hint(name, d.Manifest.SplitNames())),
		ErrMissing)
}
