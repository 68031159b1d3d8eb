// Package mds reads datasets of MosaicML Streaming: folders with an index.json and shards, raw or compressed.
//
// The index names the shards, the columns and their encodings. A shard begins with the offsets of its samples, and
// a sample with the sizes of its columns of variable size. The format has no specification but the library's code,
// which this package follows: streaming/base/format/mds in https://github.com/mosaicml/streaming. Pickle, an
// encoding that runs code, is refused: datasets come from strangers.
//
// Each shard is a rows.Stream, and package rows makes fields of their columns. Offsets, sizes and names come from
// the files, so they are checked before memory is allocated and before a file is opened.
package mds

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/rows"
)

// IndexName is the name of the file that lists the shards of a folder.
const IndexName = "index.json"

// index is the content of index.json (streaming/base/format/base/writer.py).
type index struct {
	Version int     `json:"version"`
	Shards  []shard `json:"shards"`
}

// shard is the entry of a shard in the index (streaming/base/format/mds/writer.py).
type shard struct {
	Version   int        `json:"version"`
	Format    string     `json:"format"`
	Names     []string   `json:"column_names"`
	Encodings []string   `json:"column_encodings"`
	Sizes     []*int64   `json:"column_sizes"`
	Raw       *fileInfo  `json:"raw_data"`
	Packed    *fileInfo  `json:"zip_data"`
	Method    string     `json:"compression"`
	Samples   int64      `json:"samples"`
	columns   []encoding // parsed from Encodings
}

// fileInfo is the name and size in bytes of a shard's file.
type fileInfo struct {
	Name  string `json:"basename"`
	Bytes int64  `json:"bytes"`
}

// maxIndex limits the size of an index, in bytes.
const maxIndex = 1 << 30

// Open opens a folder, an index, or a glob of folders or indexes. It reads the samples only if arrays may differ
// in shape or bytes may be images.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := source.Files(path)
	if err != nil {
		return nil, err
	}
	s := &set{shards: make(map[string]*shard), splits: source.FileSplits{Of: make(map[string]string)}}
	if err := s.add(root, files); err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	open := func(ctx context.Context, root *vfs.Root, name string) (rows.File, error) {
		return s.shards[name].open(ctx, root, name)
	}
	format := rows.Format{Kind: "mds", Unit: "samples", Sorted: true, Splits: &s.splits, Open: open}
	return rows.Open(ctx, root, path, s.names, format, opts, selection)
}

// set is the shards of a source, in order.
type set struct {
	names  []string // of the files
	shards map[string]*shard
	splits source.FileSplits
}

// add adds the shards of folders and index files. A folder without an index takes the indexes of its subfolders,
// whose names give the splits.
func (s *set) add(root *vfs.Root, paths []string) error {
	var found []string
	for _, p := range paths {
		if !source.IsDir(root, p) {
			found = append(found, p)
		} else if _, err := root.Stat(filepath.Join(p, IndexName)); err == nil {
			found = append(found, filepath.Join(p, IndexName))
		} else if inner := root.Glob(p, filepath.Join("*", IndexName)); len(inner) > 0 {
			found = append(found, inner...)
		} else {
			return fmt.Errorf("%s: the folder has no %s", p, IndexName)
		}
	}
	of := source.SplitsOfFiles(found)
	// Stable, so that indexes of one split keep the order of their paths.
	slices.SortStableFunc(found, func(a, b string) int { return source.CompareSplits(of.Of[a], of.Of[b]) })
	s.splits.Names = of.Names
	for _, name := range found {
		shards, err := s.index(root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, source.WithoutPath(err))
		}
		for _, f := range shards {
			s.splits.Of[f] = of.Of[name]
		}
	}
	if len(s.names) == 0 {
		return errors.New("names no shards")
	}
	return nil
}

// index adds the shards of an index, and returns their files.
func (s *set) index(root *vfs.Root, name string) (files []string, err error) {
	var x index
	if err := source.ReadJSON(root, name, "index of MDS", maxIndex, &x); err != nil {
		return nil, err
	}
	// Another version may have other fields, and reading it as this version would give wrong samples.
	if x.Version != 2 || len(x.Shards) == 0 {
		return nil, fmt.Errorf("is an index of version %d with %d shards; one of version 2 with shards is expected",
			x.Version, len(x.Shards))
	}
	for i := range x.Shards {
		h := &x.Shards[i]
		file, err := h.file(root, filepath.Dir(name))
		if err == nil {
			err = h.check()
		}
		if err != nil {
			return nil, fmt.Errorf("shard %d: %w", i, err)
		}
		if s.shards[file] != nil {
			return nil, fmt.Errorf("shard %d: %s is named twice", i, file)
		}
		s.shards[file] = h
		files = append(files, file)
	}
	s.names = append(s.names, files...)
	return files, nil
}

// file returns the path of a shard's file: the uncompressed file if it exists, else the compressed file. The
// library keeps either or both. The size must be as in the index, as a shard may be half downloaded.
func (h *shard) file(root *vfs.Root, dir string) (string, error) {
	for _, f := range []*fileInfo{h.Raw, h.Packed} {
		if f == nil {
			continue
		}
		// Names come from the index: a path such as ../../x must not be opened.
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return "", fmt.Errorf("%q leads out of the folder", f.Name)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		info, err := root.Stat(path)
		if errors.Is(err, vfs.ErrOutside) {
			return "", source.WithoutPath(err)
		}
		if err != nil {
			continue
		}
		if info.Size() != f.Bytes {
			return "", fmt.Errorf("%s has %d bytes, and by the index %d", f.Name, info.Size(), f.Bytes)
		}
		return path, nil
	}
	return "", errors.New("its file is not there")
}

// check returns an error if the format is unknown, or sizes do not fit the encodings, and fills in columns.
func (h *shard) check() error {
	if h.Format != "mds" || h.Version != 2 {
		return fmt.Errorf("is of format %q, version %d, and mds, version 2 is expected", h.Format, h.Version)
	}
	if len(h.Names) != len(h.Encodings) || len(h.Names) != len(h.Sizes) || h.Samples < 0 {
		return fmt.Errorf("%d columns with %d types and %d sizes", len(h.Names), len(h.Encodings), len(h.Sizes))
	}
	for i, text := range h.Encodings {
		e := newEncoding(text)
		if size := h.Sizes[i]; size != nil && *size == 0 { // as the library takes it
			h.Sizes[i] = nil
		} else if size != nil && (*size < 0 || *size > source.MaxValue || e.fixed > 0 && *size != e.fixed) {
			return fmt.Errorf("column %s of type %s has %d bytes", h.Names[i], text, *size)
		}
		h.columns = append(h.columns, e)
	}
	return nil
}
