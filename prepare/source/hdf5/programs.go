package hdf5

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
)

// frame returns an error if the file has a DataFrame in the fixed format of pandas, whose columns are in blocks by
// their types and may be pickled.
func (f *File) frame() error {
	for l := range f.meta.Walk() {
		if l.Group != nil && l.Group.IsFrame() {
			parquet := strings.TrimSuffix(f.path, filepath.Ext(f.path)) + ".parquet"
			return fmt.Errorf("%s is in the fixed format of pandas; write a table: %s: %w", l.Path, shell.Command("python3 -c",
				fmt.Sprintf("import pandas; pandas.read_hdf(%q, %q).to_parquet(%q)", f.path, trim(l.Path), parquet)),
				meta.ErrUnsupported)
		}
	}
	return nil
}

// cellError returns what to do about a cell array of MATLAB, whose elements are elsewhere; nil of another dataset.
func cellError(d *meta.Dataset) error {
	a, ok := d.Attrs.Get("MATLAB_class")
	if !ok || d.Err != nil || d.Type.Class != meta.Reference {
		return nil
	}
	if text, _ := a.Value.Text(); text != "cell" {
		return nil
	}
	name := trim(d.Path)
	return fmt.Errorf("a cell array of MATLAB; write its elements in MATLAB, and give --records '*': "+
		"for i = 1:numel(%[1]s), h5create('%[1]s.h5', sprintf('/%%d', i), size(%[1]s{i})); "+
		"h5write('%[1]s.h5', sprintf('/%%d', i), %[1]s{i}); end: %[2]w", name, meta.ErrUnsupported)
}
