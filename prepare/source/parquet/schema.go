package parquet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/arrow"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// columnsOf returns all columns of a file.
func columnsOf(p *parquet.File) (list []*leafColumn, err error) {
	hub, _ := p.Lookup("huggingface")
	features, halves := column.HubFeatures(hub), halfLeaves(p)
	extensions := extensionsOf(p)
	schema := p.Schema()
	for _, path := range schema.Columns() {
		leaf, ok := schema.Lookup(path...)
		if !ok {
			return nil, fmt.Errorf("column %s cannot be found", strings.Join(path, "."))
		}
		c := newParquetColumn(leaf, path, halves[leaf.ColumnIndex])
		c.itemLevel = itemLevel(schema, path)
		if f := features[c.name]; f.Type == "ClassLabel" {
			c.classes = f.Names
		}
		if c.extension = extensions[c.name]; c.extension.Bool && c.DType == tensor.Int8 {
			c.DType = tensor.Bool
		}
		// A tensor of fixed shape is one list in Parquet.
		if c.leaf.MaxRepetitionLevel != 1 {
			c.extension.Shape = nil
		}
		list = append(list, c)
	}
	return joinImages(list), nil
}

// extensionsOf returns the extension types of Arrow by column name.
func extensionsOf(p *parquet.File) map[string]arrow.Extension {
	text, _ := p.Lookup("ARROW:schema")
	return arrow.Extensions(text)
}

// halfLeaves returns, by leaf, whether its logical type is FLOAT16. The library does not expose that type in its
// schema.
func halfLeaves(p *parquet.File) map[int]bool {
	halves, leaf := make(map[int]bool), 0
	for _, e := range p.Metadata().Schema {
		// The schema lists inner nodes, too, which have no type; leaves are numbered without them.
		if !e.Type.Valid {
			continue
		}
		_, half := e.LogicalType.Value.(*format.Float16Type)
		halves[leaf] = half && e.TypeLength.V == 2
		leaf++
	}
	return halves
}

// joinImages joins each pair of columns X.bytes and X.path to the image column X.
func joinImages(list []*leafColumn) []*leafColumn {
	for _, c := range list {
		name, ok := strings.CutSuffix(c.name, ".bytes")
		at := slices.IndexFunc(list, func(p *leafColumn) bool { return p.name == name+".path" })
		if ok && at >= 0 {
			// The path of the struct is only a name, and is dropped with its column.
			c.name, c.image = name, true
			list = slices.Delete(list, at, at+1)
			return joinImages(list)
		}
	}
	return list
}

// selectParquet returns the selected columns, all without a selection.
func selectParquet(columns []*leafColumn, selection []column.Selection) ([]*leafColumn, error) {
	if len(selection) == 0 {
		return columns, nil
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	var list []*leafColumn
	for _, w := range selection {
		at := slices.Index(names, w.Column)
		if at < 0 {
			c, err := concat(columns, names, w)
			if err != nil {
				return nil, fmt.Errorf("--fields %s: %w", w, err)
			}
			list = append(list, c)
			continue
		}
		c := *columns[at]
		c.selection = w
		list = append(list, &c)
	}
	return list, nil
}

// concat returns the column for a selection of several columns: an array of their numbers, which must be of one
// type.
func concat(columns []*leafColumn, names []string, w column.Selection) (*leafColumn, error) {
	wanted, missing := column.Matching(w.Column, names)
	switch {
	case missing != "" || len(wanted) == 0:
		return nil, fmt.Errorf("there is no column %q%s", missing, suggest.Hint(missing, names))
	case w.Field == "":
		return nil, fmt.Errorf("%d columns become one field, which needs a name: %s=NAME", len(wanted), w.Column)
	}
	all := &leafColumn{name: w.Column, selection: w, shape: []int{len(wanted)}, scale: -1}
	for _, name := range wanted {
		c := *columns[slices.Index(names, name)]
		switch {
		case c.leaf.MaxRepetitionLevel > 0 || c.DType == tensor.Invalid || c.image:
			return nil, fmt.Errorf("column %q holds no single numbers", name)
		case len(all.parts) > 0 && c.DType != all.DType:
			return nil, fmt.Errorf("column %q holds %v, and %q %v; an array has numbers of one type", all.parts[0].name,
				all.DType, name, c.DType)
		}
		all.DType, all.parts = c.DType, append(all.parts, &c)
	}
	// Classes of the hub are about one column, and mean nothing in an array.
	for _, c := range all.parts { // each is read like a single column
		c.classes, c.field = nil, source.NumberField(c.name, c.DType)
	}
	if w.Type == "" {
		return all, nil
	}
	t, _ := column.ParseType(w.Type) // ParseFields has checked it
	if t.Shape != nil {
		all.shape = t.Shape
	}
	switch {
	case t.Kind != column.Numbers || t.Ragged || tensor.Shape(all.shape).Elems() != len(wanted):
		return nil, fmt.Errorf("%d columns of single numbers make no %v", len(wanted), t)
	case t.DType != all.DType:
		return nil, fmt.Errorf("the columns hold %v, which :%s cannot convert; leave :%s out, and convert the field with "+
			"the transform Cast", all.DType, w.Type, w.Type)
	}
	return all, nil
}
