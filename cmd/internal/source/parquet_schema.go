package source

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/penstock/penstock/internal/suggest"
)

// parquetColumns returns all columns of a file, the two of an image as one.
func parquetColumns(p *parquet.File) (list []*parquetColumn, err error) {
	classes, halves := hubClasses(p), halfLeaves(p)
	schema := p.Schema()
	for _, path := range schema.Columns() {
		leaf, ok := schema.Lookup(path...)
		if !ok {
			return nil, fmt.Errorf("column %s cannot be found", strings.Join(path, "."))
		}
		c := newParquetColumn(leaf, path, halves[leaf.ColumnIndex])
		c.classes = classes[c.name]
		list = append(list, c)
	}
	return joinImages(list), nil
}

// halfLeaves returns which leaves of the schema are of the logical type FLOAT16.
func halfLeaves(p *parquet.File) map[int]bool {
	halves, leaf := make(map[int]bool), 0
	for _, e := range p.Metadata().Schema {
		if !e.Type.Valid {
			continue
		}
		_, half := e.LogicalType.Value.(*format.Float16Type)
		halves[leaf] = half && e.TypeLength.V == 2
		leaf++
	}
	return halves
}

// joinImages makes one column of X.bytes and X.path.
func joinImages(list []*parquetColumn) []*parquetColumn {
	for _, c := range list {
		name, ok := strings.CutSuffix(c.name, ".bytes")
		at := slices.IndexFunc(list, func(p *parquetColumn) bool { return p.name == name+".path" })
		if ok && at >= 0 {
			c.name, c.image = name, true
			list = slices.Delete(list, at, at+1)
			return joinImages(list)
		}
	}
	return list
}

// hubClasses returns the class names that the Hugging Face hub keeps beside the schema.
func hubClasses(p *parquet.File) map[string][]string {
	text, ok := p.Lookup("huggingface")
	if !ok {
		return nil
	}
	var meta struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &meta) != nil {
		return nil // it is nothing that the rows need
	}
	classes := make(map[string][]string)
	for name, raw := range meta.Info.Features {
		var f struct {
			Type  string   `json:"_type"`
			Names []string `json:"names"`
		}
		if json.Unmarshal(raw, &f) == nil && f.Type == "ClassLabel" && len(f.Names) > 0 {
			classes[name] = f.Names
		}
	}
	return classes
}

// selectParquet keeps the columns that are wanted.
func selectParquet(columns []*parquetColumn, wanted []Wanted) ([]*parquetColumn, error) {
	if len(wanted) == 0 {
		return columns, nil
	}
	var list []*parquetColumn
	for _, w := range wanted {
		at := slices.IndexFunc(columns, func(c *parquetColumn) bool { return c.name == w.Column })
		if at < 0 {
			var names []string
			for _, c := range columns {
				names = append(names, c.name)
			}
			return nil, fmt.Errorf("--fields %s: there is no column %q%s", w, w.Column, suggest.Hint(w.Column, names))
		}
		c := *columns[at]
		c.wanted = w
		list = append(list, &c)
	}
	return list, nil
}
