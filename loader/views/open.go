package views

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// Part is an opened dataset: *mmapds.Dataset and *mirror.Dataset are.
type Part interface {
	loader.Source
	Schema() store.Schema
	Guard(f func() error) error
	Close() error
}

// Options says how a view is opened. The zero value is usable.
type Options struct {
	// Fields are the names of the fields that the view shall have, in this order; an empty list means all fields.
	Fields []string

	// Open opens the dataset at a path or URL, with the named fields and split; nil fields mean all fields, and split
	// "" means all records. A nil Open means mmapds.Open, which reads no URLs.
	Open func(ctx context.Context, path string, fields []string, split string) (Part, error)
}

// Dataset is a view whose datasets are open.
type Dataset struct {
	Source loader.Source // the records; it can do what its datasets can
	Fields []store.Field // of the records, with what the datasets say of them

	parts []Part
}

// Open opens a view and its datasets, or a dataset. Close closes them.
func Open(ctx context.Context, path string, o Options) (*Dataset, error) {
	return (&Node{Dataset: path, Fields: o.Fields}).Open(ctx, Options{Open: o.Open})
}

// Open opens the datasets of a view, whose paths are relative to the working directory.
func (n *Node) Open(ctx context.Context, o Options) (*Dataset, error) {
	if err := n.check(0); err != nil {
		return nil, err
	}
	if err := n.CheckSize(); err != nil {
		return nil, err
	}
	if o.Open == nil {
		o.Open = openLocal
	}
	d := new(Dataset)
	v, err := d.open(ctx, n, o.Open)
	if err == nil && o.Fields != nil {
		v, err = v.choose(o.Fields)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.Source, d.Fields = v.src, v.fields
	return d, nil
}

func openLocal(_ context.Context, path string, fields []string, split string) (Part, error) {
	ds, err := mmapds.Open(path, mmapds.WithFields(fields...), mmapds.WithSplit(split))
	if err != nil {
		return nil, err
	}
	return ds, nil
}

// Parts returns the open datasets.
func (d *Dataset) Parts() []Part { return d.parts }

// Close closes the datasets.
func (d *Dataset) Close() error {
	var errs []error
	for _, p := range d.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Guard calls f, which reads memory of the datasets, and returns faults in that memory as errors.
// The guards of all datasets are nested, because each explains faults of its own memory only.
func (d *Dataset) Guard(f func() error) error {
	for _, p := range d.parts {
		inner := f
		f = func() error { return p.Guard(inner) }
	}
	return f()
}

// opened is an opened part of a view: its records and its fields.
type opened struct {
	src    loader.Source
	fields []store.Field
}

// choose returns v with some of its fields.
func (v opened) choose(fields []string) (opened, error) {
	return v.selected(combine.Select{Fields: fields})
}

// selected returns v with some of its records and fields.
func (v opened) selected(s combine.Select) (opened, error) {
	src, err := combine.NewSelect(v.src, s)
	if err != nil {
		return v, err
	}
	names := s.Fields
	if names == nil {
		for _, f := range v.fields {
			names = append(names, f.Name)
		}
	}
	var fields []store.Field
	for i, spec := range src.Specs() {
		f := v.fields[slices.IndexFunc(v.fields, func(f store.Field) bool { return f.Name == names[i] })]
		f.Spec = spec
		fields = append(fields, f)
	}
	return opened{src, fields}, nil
}

// open opens a node. Every dataset that it opens is appended to d.parts at once, so that Close
// closes all of them even if a later dataset fails to open.
func (d *Dataset) open(ctx context.Context, n *Node, open openFunc) (opened, error) {
	switch {
	case n.Select != nil:
		return d.openSelect(ctx, n, open)
	case n.Derive != nil:
		return d.openDerive(ctx, n, open)
	case n.Zip != nil, n.Concat != nil, n.Window != nil, n.Join != nil:
		return d.openSeveral(ctx, n, open)
	}
	v, err := d.openDataset(ctx, n, open)
	if has, ok := v.src.(loader.Identifier); err == nil && n.ID != "" && ok && has.ID() != n.ID {
		files, is := v.src.(interface{ Files() *store.Dataset })
		if is && (files.Files().Manifest == nil || files.Files().Format == "hdf5") { // there are no generations
			return v, fmt.Errorf("%s was replaced or changed after the view was made; make the view again", n.Dataset)
		}
		err = fmt.Errorf("%s has the id %q, and had %q when the view was made; name the generation that it was made of, as "+
			"\"dataset\": \"%[1]s@1\" (penstock log lists them), or make the view again", n.Dataset, has.ID(), n.ID)
	}
	return v, err
}

// openDataset opens a dataset, or a view in a separate file.
func (d *Dataset) openDataset(ctx context.Context, n *Node, open openFunc) (opened, error) {
	if !Is(n.Dataset) {
		p, err := open(ctx, n.Dataset, n.Fields, n.Split)
		if err != nil {
			return opened{}, err
		}
		d.parts = append(d.parts, p)
		return opened{p, p.Schema().Fields}, nil
	}
	if n.Split != "" {
		return opened{}, fmt.Errorf("view %s: a view has no splits; name the split in its datasets", n.Dataset)
	}
	inner, err := Read(n.Dataset)
	if err != nil {
		return opened{}, err
	}
	v, err := d.open(ctx, inner, open)
	if err == nil && n.Fields != nil {
		v, err = v.choose(n.Fields)
	}
	if err != nil {
		return v, fmt.Errorf("view %s: %w", n.Dataset, err)
	}
	return v, nil
}

type openFunc = func(ctx context.Context, path string, fields []string, split string) (Part, error)

func (d *Dataset) openSelect(ctx context.Context, n *Node, open openFunc) (opened, error) {
	v, err := d.open(ctx, n.Select, open)
	if err != nil {
		return v, err
	}
	s := combine.Select{Ranges: n.Ranges, Fields: n.Fields, Rename: n.Rename}
	if n.Records != nil {
		if s.Records, err = n.Records.load(); err != nil {
			return v, err
		}
	}
	if n.Where != "" {
		if s.Set, err = expr.Find(ctx, v.src, n.Where); err != nil {
			return v, err
		}
	}
	return v.selected(s)
}

func (d *Dataset) openDerive(ctx context.Context, n *Node, open openFunc) (opened, error) {
	v, err := d.open(ctx, n.Derive, open)
	if err != nil {
		return v, err
	}
	src, err := combine.NewDerive(v.src, n.Expressions...)
	if err != nil {
		return v, err
	}
	fields := slices.Clone(v.fields)
	for _, spec := range src.Specs()[len(fields):] {
		f := store.NewField(spec.Name, spec.DType, spec.Shape...)
		f.Dims, f.Coordinates = spec.Dims, spec.Coordinates
		fields = append(fields, f)
	}
	return opened{src, fields}, nil
}

func (d *Dataset) openSeveral(ctx context.Context, n *Node, open openFunc) (opened, error) {
	var sources []loader.Source
	var names []string
	var fields [][]store.Field
	for i, part := range n.parts() {
		v, err := d.open(ctx, part, open)
		if err != nil {
			return v, err
		}
		sources, fields, names = append(sources, v.src), append(fields, v.fields), append(names, fmt.Sprintf("part %d", i))
	}
	if n.Window != nil {
		by := *n.By
		if n.Origins != nil {
			var err error
			if by.Origins, err = n.Origins.load(); err != nil {
				return opened{}, err
			}
		}
		ws, err := combine.NewWindows(ctx, by, sources...)
		if err != nil {
			return opened{}, err
		}
		return opened{ws, windowed(ws, n.By, slices.Concat(fields...))}, nil
	}
	if n.Join != nil {
		joined, _, err := combine.NewJoin(ctx, sources[0], sources[1], *n.Match)
		if err != nil {
			return opened{}, err
		}
		return opened{joined, side(joined, fields[0], fields[1])}, nil
	}
	if n.Zip != nil {
		zip, err := combine.NewZip(sources...)
		return opened{zip, slices.Concat(fields...)}, err
	}
	return concat(n.Fill, names, sources, fields)
}

// concat returns the concatenated records of views; names are the views' names for messages.
func concat(fill combine.FillValues, names []string, sources []loader.Source, fields [][]store.Field) (opened, error) {
	if fill != nil {
		union, err := combine.NewUnion(fill, sources...)
		if err != nil {
			return opened{}, err
		}
		fields = united(union, fields)
		common, err := Common(names, fields)
		return opened{union, common}, err
	}
	common, err := Common(names, fields)
	if err != nil {
		return opened{}, err
	}
	joined, err := combine.NewConcat(sources...)
	return opened{joined, common}, err
}

// united returns the fields of each part of a union. A field that is missing in a part is
// described as in the first part with the field.
func united(union *combine.Concat, parts [][]store.Field) [][]store.Field {
	out := make([][]store.Field, len(parts))
	for _, spec := range union.Specs() {
		named := func(f store.Field) bool { return f.Name == spec.Name }
		first := slices.IndexFunc(parts, func(fields []store.Field) bool { return slices.ContainsFunc(fields, named) })
		for k, fields := range parts {
			i := slices.IndexFunc(fields, named)
			if i < 0 {
				fields = parts[first]
				i = slices.IndexFunc(fields, named)
			}
			out[k] = append(out[k], fields[i])
		}
	}
	return out
}

// side returns the fields of a join: all fields of the left side, and those fields of the right
// side that the join has.
func side(joined *combine.View, left, right []store.Field) []store.Field {
	out := slices.Clone(left)
	for _, spec := range joined.Specs()[len(left):] {
		out = append(out, right[slices.IndexFunc(right, func(f store.Field) bool { return f.Name == spec.Name })])
	}
	return out
}

// windowed returns the fields of windows. Their classes are the classes of the fields that the
// windows are cut from.
func windowed(ws *combine.Windows, by *combine.Window, fields []store.Field) (out []store.Field) {
	for i, spec := range ws.Specs() {
		of := spec.Name
		if len(by.Fields) > i && by.Fields[i].Of != "" {
			of = by.Fields[i].Of
		}
		f := store.Field{Spec: spec, Storage: spec.DType.Descr()}
		if k := slices.IndexFunc(fields, func(f store.Field) bool { return f.Name == of }); k >= 0 {
			f.Classes = fields[k].Classes
		}
		out = append(out, f)
	}
	return out
}

// load returns the record numbers, which it reads from the file if there is one.
func (n *Numbers) load() ([]int, error) {
	if n.Path == "" {
		return n.List, nil
	}
	ds, err := mmapds.Open(n.Path)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	spec := ds.Specs()[0]
	out := []int{}
	if len(spec.Shape) > 0 || len(ds.Specs()) > 1 {
		return nil, fmt.Errorf("%s: it is not one list of numbers", n.Path)
	}
	err = ds.Guard(func() error {
		v, err := ds.Slice(spec.Name, 0, ds.Len())
		if err == nil {
			out, err = recordNumbers(v)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Path, err)
	}
	return out, nil
}
