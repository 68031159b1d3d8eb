// Package arrow reads Arrow's IPC files and streams, Feather, and what datasets.save_to_disk writes.
//
// It has its own reader: Apache's library adds 3.5 MB to the program, reads a batch as a whole (a thousand images), and
// allocates what a file claims. Here, metadata are checked against the file's size, and the bytes of strings and images
// are read one by one. The format is https://arrow.apache.org/docs/format/Columnar.html; its metadata are flatbuffers,
// which flatbuffer.go reads. Files come as a rows.Format, and package rows makes fields of their columns.
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

// Open reads the metadata of all files. It goes through the rows where there are lists, or words of labels.
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

// filesOf returns the files of a source: of a folder those that datasets.save_to_disk names, or all.
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

// saved returns the files of a folder: those that state.json lists, as the others are caches, or else all.
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

// maxJSON is the maximum size of a JSON file next to the data, in bytes.
const maxJSON = 64 << 20
