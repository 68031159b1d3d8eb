package hdf5

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
)

// frame returns an error if the file has a DataFrame in the fixed format of pandas. That format joins columns into
// blocks by their types and may pickle them, and a pickle is a program that this package does not run.
func (f *File) frame() error {
	for l := range f.meta.Walk() {
		if l.Group != nil && l.Group.IsFrame() {
			parquet := strings.TrimSuffix(f.path, filepath.Ext(f.path)) + ".parquet"
			return fmt.Errorf("%s is in the fixed format of pandas; write a table: %s: %w", l.Path, shell.Command("python3 -c",
				fmt.Sprintf("import pandas; pandas.DataFrame(pandas.read_hdf(%q, %q)).rename(columns=str).to_parquet(%q)", f.path,
					trim(l.Path), parquet)), meta.ErrUnsupported)
		}
	}
	return nil
}

// cellError returns an error for a cell array of MATLAB, with the command to type, whose elements are separate objects;
// nil for any other dataset.
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

// columnsOfBlock returns the names of the n columns in a block of pandas' table format, which is one array; nil if they
// are not known. pandas stores the names as a pickle of protocol 0: a list of texts and whole numbers. The text of the
// pickle is parsed and never executed, since a hostile pickle can run any code.
func columnsOfBlock(d *meta.Dataset, block string, n int) (names []string) {
	a, ok := d.Attrs.Get(block + "_kind")
	if !ok {
		return nil
	}
	text, _ := a.Value.Text()
	list, is := strings.CutPrefix(text, "(lp0\n")
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "a"), "\n")
		switch name, rest := line[:min(1, len(line))], line[min(1, len(line)):]; name {
		case "V":
			names = append(names, unpickled(rest))
		case "I":
			names = append(names, rest)
		case "p", ".":
		default:
			is = false // pickle's reference to an equal name before, or a name of another type
		}
	}
	if !is || len(names) != n {
		return nil
	}
	return names
}

// unpickled returns a text of pickle's protocol 0: bytes are Latin-1, and \u with four digits or \U with eight stands
// for another character.
func unpickled(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		char := rune(text[i])
		// The order of the map does not matter: a text begins with at most one of the two marks.
		for mark, digits := range map[string]int{`\u`: 4, `\U`: 8} {
			rest, is := strings.CutPrefix(text[i:], mark)
			if code, err := strconv.ParseUint(rest[:min(digits, len(rest))], 16, 32); is && err == nil {
				char = rune(code)
				i += 1 + digits
				break
			}
		}
		b.WriteRune(char)
	}
	return b.String()
}
