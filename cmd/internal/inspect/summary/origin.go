package summary

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source/cells"
	"github.com/penstock/penstock/prepare/source/hdf5"
)

// Origin says which program's conventions an HDF5 file follows, and what that means for a dataset
// made from it. HDF5 itself does not say what its arrays are; these programs mark their files by
// attributes.
type Origin struct {
	Program string   `json:"program"`
	Notes   []string `json:"notes"`             // what can be a dataset, and what cannot
	Command string   `json:"command,omitempty"` // makes a dataset of the file; "" if Conversions have the commands
}

// OriginOf recognizes files of AnnData, MATLAB, pandas, netCDF and PyTables, in this order, as
// pandas writes through PyTables. It returns nil for other files.
func OriginOf(path string, f *meta.File) *Origin {
	for _, try := range []func(string, *meta.File) *Origin{annData, matlab, pandas, netCDF, pyTables} {
		if o := try(path, f); o != nil {
			return o
		}
	}
	return nil
}

// fieldsOf collects the value of --fields, and gives each column a name that no other column has.
type fieldsOf struct {
	parts []string
	used  map[string]bool
}

// add appends a column, under the name if it is a valid one and not in use.
func (l *fieldsOf) add(column, name string) {
	if l.used == nil {
		l.used = make(map[string]bool)
	}
	if plainName(name) && !l.used[name] && name != column {
		column += "=" + name
	}
	l.used[name] = true
	l.parts = append(l.parts, column)
}

// command returns the command that converts the columns, "" if no columns were collected.
func (l *fieldsOf) command(path string) string {
	if len(l.parts) == 0 {
		return ""
	}
	return chunk.ConvertCommand(path, filepath.Join(filepath.Dir(path), stem(path)+"-mapped.h5"),
		strings.Join(l.parts, ","))
}

// textAttr returns the value of an attribute that is a text, "" if the object has no such
// attribute.
func textAttr(attrs meta.Attrs, name string) string {
	a, ok := attrs.Get(name)
	if !ok {
		return ""
	}
	text, _ := a.Value.Text()
	return text
}

// annData describes .h5ad files: a record is a row of X and of obs.
func annData(path string, f *meta.File) *Origin {
	h := hdf5.Hierarchy(f)
	if !cells.Is(h) {
		return nil
	}
	o := &Origin{Program: "AnnData", Notes: []string{"a record is a cell: a row of X, its columns of obs, " +
		"and its arrays of obsm. layers/NAME and raw/X are fields where they are named (--fields)"}}
	if h.Kind("matrix") == cells.Group {
		o.Program = "10x's Cell Ranger"
	}
	if cells.Encoding(h, "X") == "csc_matrix" {
		o.note("X is a csc matrix, whose rows are not together; write it by rows: a.X = a.X.tocsr(); a.write(%q)",
			stem(path)+"-rows.h5ad")
		return o
	}
	o.Command = chunk.ConvertCommand(path, filepath.Join(filepath.Dir(path), stem(path)+"-mapped.h5"), "")
	return o
}

// note adds a note.
func (o *Origin) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// matlab describes MAT-files of version 7.3, whose objects have the attribute MATLAB_class.
func matlab(_ string, f *meta.File) *Origin {
	found := false
	var cells []string
	for l := range f.Walk() {
		attrs := l.Attrs
		if l.Dataset != nil {
			attrs = l.Dataset.Attrs
		} else if l.Group != nil {
			attrs = l.Group.Attrs
		}
		class := textAttr(attrs, "MATLAB_class")
		found = found || class != ""
		if class == "cell" || class == "char" {
			cells = append(cells, fmt.Sprintf("%s (%s)", strings.TrimPrefix(l.Path, "/"), class))
		}
	}
	if !found {
		return nil
	}
	o := &Origin{Program: "MATLAB 7.3"}
	o.note("MATLAB stores axes in reverse: records are along the last axis of an array there. Of an array x whose first axis " +
		"has the records, run in MATLAB: x = permute(x, ndims(x):-1:1); save('x.mat', 'x', '-v7.3')")
	if len(cells) > 0 {
		o.note("not read as strings or lists: %s; save them as numeric arrays",
			strings.Join(cells[:min(len(cells), 5)], ", "))
	}
	return o
}

// pandas describes the tables of an HDFStore, whose groups have the attribute pandas_type.
func pandas(path string, f *meta.File) *Origin {
	var o *Origin
	var fields fieldsOf
	length := int64(-1)
	for l := range f.Walk() {
		if l.Group == nil || l.Loop || l.Err != nil {
			continue
		}
		kind := textAttr(l.Group.Attrs, "pandas_type")
		if kind == "" {
			continue
		}
		if o == nil {
			o = &Origin{Program: "pandas (HDFStore)"}
		}
		key := strings.Trim(l.Path, "/")
		table, err := f.Dataset(l.Path + "/table")
		if err != nil {
			o.note("%s is in the fixed format: values by blocks of columns of one type, such as %s/block0_values, with the "+
				"names in %s/block0_items; strings are pickled, which is not read; write it with format=\"table\"", key, key, key)
			continue
		}
		list, err := hdf5.Fields(table)
		if err != nil {
			o.note("%s is not taken: %v", key, err)
			continue
		}
		if length >= 0 && table.Records() != length {
			o.note("%s has %d records, not %d: it is another dataset", key, table.Records(), length)
			continue
		}
		length = table.Records()
		for _, field := range list {
			name := field.Origin[strings.LastIndexByte(field.Origin, '/')+1:]
			fields.add(field.Origin, name)
			if strings.HasPrefix(name, "values_block_") {
				o.note("%s: %s is several columns in one array; written with data_columns=True, they keep their names", key, name)
			}
		}
	}
	if o != nil {
		o.Command = fields.command(path)
	}
	return o
}

// netCDF describes netCDF-4 files, by the attributes of the netCDF library or of its dimension
// scales.
func netCDF(_ string, f *meta.File) *Origin {
	found := textAttr(f.Root.Attrs, "_NCProperties") != ""
	var packed []string
	for _, d := range f.Datasets() {
		_, ok := d.Attrs.Get("_Netcdf4Dimid")
		_, list := d.Attrs.Get("DIMENSION_LIST")
		found = found || ok || list
		if _, ok := d.Attrs.Get("scale_factor"); ok {
			packed = append(packed, strings.TrimPrefix(d.Path, "/"))
		}
	}
	if !found {
		return nil
	}
	o := &Origin{Program: "netCDF-4"}
	o.note("variables of one first dimension make a dataset; records are along it")
	if len(packed) > 0 {
		o.note("packed: %s. Values are stored as they are; the numbers that are meant are VALUE*scale_factor + add_offset, "+
			"see the attributes", strings.Join(packed[:min(len(packed), 5)], ", "))
	}
	return o
}

// pyTables describes other files of PyTables, by the attribute of the root group.
func pyTables(_ string, f *meta.File) *Origin {
	if textAttr(f.Root.Attrs, "PYTABLES_FORMAT_VERSION") == "" {
		return nil
	}
	o := &Origin{Program: "PyTables"}
	o.note("a table makes a field of each column, a VLArray of numbers one of variable length; pickled objects " +
		"are not read")
	return o
}

// renderOrigin prints which program wrote a file, and the command that makes a dataset of it.
func renderOrigin(b *strings.Builder, o *Origin) {
	if o == nil {
		return
	}
	fmt.Fprintf(b, "\nWritten by %s\n", shell.Line(o.Program))
	for _, note := range o.Notes {
		fmt.Fprintf(b, "  - %s\n", shell.Line(note))
	}
	if o.Command != "" {
		fmt.Fprintf(b, "  To make a dataset\n    %s\n", o.Command)
	}
}
