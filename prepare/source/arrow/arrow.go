// Package arrow reads Arrow's IPC files and streams, Feather version 2, and the folders that datasets.save_to_disk
// writes. The format is https://arrow.apache.org/docs/format/Columnar.html.
//
// It has a reader of its own: Apache's library adds 3.5 MB to the program, reads a record batch as a whole (a
// thousand images), and allocates memory for sizes that a file claims. This reader checks metadata against the size
// of the file, and reads the bytes of uncompressed strings and images one value at a time.
//
// A file is opened as a rows.Format, and package rows makes fields of its columns. Metadata are flatbuffers
// (flatbuffer.go). The schema becomes a tree of nodes (schema.go), and the nodes outside of lists become the
// columns, called leaves. A batch has the places of its buffers in the file (batch.go), and a loaded batch their
// content, from which row.go takes the values of a row. Any number of goroutines may read rows of one batch.
package arrow

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/rows"
)

// Open opens a file, a folder or a glob. It reads the metadata of all files, and goes through the rows only if
// there are lists, whose lengths decide the field, or words of labels, which become classes.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	format := rows.Format{Kind: "arrow", Unit: "rows", Open: open}
	names, err := source.Files(path)
	if err == nil {
		names, format.Splits, err = filesOf(root, path, names)
	}
	if err != nil {
		return nil, err
	}
	return rows.Open(ctx, root, path, names, format, opts, selection)
}

// filesOf returns the files of a source and their splits. For a folder of a DatasetDict, dataset_dict.json lists
// the splits, each in a folder of its own. The names come from the file and may not contain a path.
func filesOf(root *vfs.Root, path string, names []string) ([]string, *source.FileSplits, error) {
	if !source.IsDir(root, names[0]) {
		return names, nil, nil
	}
	folder := names[0]
	var dict struct {
		Splits []string `json:"splits"`
	}
	if err := source.ReadJSON(root, filepath.Join(folder, "dataset_dict.json"), "dictionary of datasets", maxJSON,
		&dict); err != nil {
		// Without a readable dictionary, the folder is a dataset of its own.
		names, err := saved(root, path, folder)
		return names, nil, err
	}
	splits := &source.FileSplits{Names: dict.Splits, Of: make(map[string]string)}
	names = nil
	slices.SortStableFunc(splits.Names, source.CompareSplits)
	for _, s := range splits.Names {
		if s != filepath.Base(s) || s == ".." {
			return nil, nil, fmt.Errorf("source %s: dataset_dict.json names a split %q", path, s)
		}
		files, err := saved(root, path, filepath.Join(folder, s))
		if err != nil {
			return nil, nil, err
		}
		for _, f := range files {
			splits.Of[f] = s
		}
		names = append(names, files...)
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("source %s: dataset_dict.json names no split", path)
	}
	return names, splits, nil
}

// saved returns the data files of a folder of datasets.save_to_disk. state.json lists them; other .arrow files in
// the folder are caches of map and filter. Without state.json, all files are taken.
func saved(root *vfs.Root, path, folder string) (names []string, err error) {
	var state struct {
		Files []struct {
			Name string `json:"filename"`
		} `json:"_data_files"`
	}
	if source.ReadJSON(root, filepath.Join(folder, "state.json"), "state of a dataset", maxJSON, &state) != nil ||
		len(state.Files) == 0 {
		return source.FilesOf(root, source.Escape(folder), "arrow")
	}
	for _, f := range state.Files {
		if f.Name != filepath.Base(f.Name) || f.Name == ".." {
			return nil, fmt.Errorf("source %s: state.json names a file %q", path, f.Name)
		}
		names = append(names, filepath.Join(folder, f.Name))
	}
	return names, nil
}

// maxJSON limits the size of a JSON file next to the data, in bytes.
const maxJSON = 64 << 20
