// Package layout has the command inspect layout, which says where each part of a dataset is in its
// files.
//
// Read lists the pieces of every file with offset, size and meaning. ListChunks lists the chunks of
// HDF5 arrays. ReadWindows estimates what reading windows of arrays costs: how many chunks a window
// touches, and how many bytes these decode to; it also searches for better chunks.
package layout

import (
	"os"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// Layout says where everything of a dataset is on disk.
type Layout struct {
	Path   string     `json:"path"`
	Format string     `json:"format"`           // "flat", "zarr" or "hdf5"
	Pieces []Piece    `json:"pieces"`           // by file, then by offset
	Chunks []ChunkMap `json:"chunks,omitempty"` // of each chunked dataset
	Maps   []Map      `json:"maps"`             // how NumPy maps each field
}

// Piece is a run of bytes with one meaning.
type Piece struct {
	File   string `json:"file"` // its name without the path
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	What   string `json:"what"`
	Field  string `json:"field,omitempty"`
	First  *int64 `json:"first_record,omitempty"` // of records: the number of the first
	Count  *int64 `json:"records,omitempty"`
}

// Map says how a field, or one shard of it, is mapped with NumPy alone.
type Map struct {
	Field  string `json:"field"`
	Shard  int    `json:"shard"`
	Python string `json:"python,omitempty"`
	Reason string `json:"reason,omitempty"` // why it cannot be mapped, instead of Python
}

// Read finds out where everything of the dataset at path is.
func Read(path string) (*Layout, error) {
	p, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if p.Meta != nil {
		return readHDF5(p)
	}
	d, err := p.Locate()
	if err != nil {
		return nil, p.WithAdvice(err)
	}
	return readFolder(d)
}

// manifests has the path of the manifest by format, and heads the name of the bytes before the rows
// of a shard. A shard of Zarr has its index there.
var (
	manifests = map[string]string{"flat": layout.ManifestName, "zarr": layout.ZarrManifest}
	heads     = map[string]string{"flat": "NumPy header", "zarr": "index of the shard"}
)

// readFolder lists the pieces of a flat or Zarr dataset.
func readFolder(d *store.Dataset) (*Layout, error) {
	l := &Layout{Path: d.Path, Format: d.Format, Maps: []Map{}}
	manifest := manifests[d.Format]
	info, err := os.Stat(filepath.Join(d.Path, filepath.FromSlash(manifest)))
	if err != nil {
		return nil, err
	}
	l.Pieces = append(l.Pieces, Piece{File: manifest, Size: info.Size(), What: "manifest"})
	for _, c := range layout.Of(d).Columns {
		for k, e := range c.Extents {
			m := Map{Field: c.Name, Shard: k}
			switch {
			case e.Count == 0:
				m.Reason = "there are no rows to map"
			case c.Packed:
				m.Reason = layout.Of(d).Storage(&c)
			default:
				l.shard(c, e)
				m.Python = dataset.Memmap(e.Path, c.Spec, e.Offset, e.Count)
			}
			l.Maps = append(l.Maps, m)
		}
	}
	return l, nil
}

// relative returns a path relative to the dataset's folder.
func (l *Layout) relative(path string) string {
	if name, err := filepath.Rel(l.Path, path); err == nil {
		return filepath.ToSlash(name)
	}
	return path
}

// shard adds the payload and the checksums of one column in one shard. Checksums are 4 bytes per
// block; in a flat dataset they are a .npy file of their own, with a header.
func (l *Layout) shard(c layout.Column, e layout.Extent) {
	payload, sums, head := l.relative(e.Path), l.relative(e.SumsPath), heads[l.Format]
	l.Pieces = append(l.Pieces,
		Piece{File: payload, Size: e.Offset, What: head, Field: c.Name},
		Piece{File: payload, Offset: e.Offset, Size: e.Count * int64(c.Spec.RecordBytes()), What: "records", Field: c.Name,
			First: &e.First, Count: &e.Count},
	)
	if l.Format == "flat" {
		l.Pieces = append(l.Pieces, Piece{File: sums, Size: e.SumsOffset, What: head, Field: c.Name})
	}
	l.Pieces = append(l.Pieces,
		Piece{File: sums, Offset: e.SumsOffset, Size: 4 * layout.Blocks(e.Count, c.Spec.RecordBytes()), What: "checksums",
			Field: c.Name},
	)
}
