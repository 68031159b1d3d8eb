// Package verify is the command inspect verify: it checks that a dataset's bytes are the bytes that were written.
//
// [Dataset] reads all records, compares them with the checksums of the manifest, and returns a [Verification]. Each
// [Corruption] in it names the field, the shard and the records that may be wrong, so that the others stay usable.
// Bytes that no checksum covers are listed in Verification.Unchecked.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/seal"
	"github.com/penstock/penstock/store/hdf5/view"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// Verification is the result of Dataset, as --json prints it.
type Verification struct {
	Path      string `json:"path"`
	Format    string `json:"format"` // "flat", "hdf5" or "zarr"
	Whole     bool   `json:"whole"`  // nothing is corrupt
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`     // bytes of records that were compared with their checksums
	Checksums int64  `json:"checksums"` // number of checksums that were compared
	// Metadata is the number of intact bytes of an HDF5 file or Zarr besides the records.
	Metadata int64 `json:"metadata"`
	// Chunks is the number of chunks of an HDF5 file of another program that match the checksums of
	// their filters.
	Chunks      int64        `json:"chunks"`
	Corruptions []Corruption `json:"corruptions"`   // by field, shard and record
	Unchecked   []string     `json:"unchecked"`     // sentences: what no checksum covers
	Boxes       []string     `json:"boxes"`         // sentences: boxes that do not fit their images
	Unknown     []string     `json:"unknown_files"` // in a dataset's folder, but not of the dataset
}

// Corruption is a piece of a dataset that is not what was written. Without a Field, it is a piece
// of a file that belongs to no record.
type Corruption struct {
	Field   string `json:"field"`
	Shard   int    `json:"shard"`
	First   int64  `json:"first_record"` // the records that may be wrong, both included
	Last    int64  `json:"last_record"`
	File    string `json:"file"`
	Offset  int64  `json:"offset"` // of the first byte of the file that may be wrong
	Problem string `json:"problem"`
}

// Options configures Dataset. The zero value is usable.
type Options struct {
	Workers  int               // goroutines that read; 0 means GOMAXPROCS
	Begin    func(bytes int64) // called with how many bytes of records will be read; may be nil
	Progress func(n int64)     // called with n more of them, from one goroutine at a time; may be nil
}

// Dataset reads all records of the dataset at path and compares them with their checksums. Headers
// and sizes of files are compared with the manifest first; if they are wrong, everything that can
// be read is still checked. An error means that nothing could be verified; corruption is not an
// error but in the Verification.
func Dataset(ctx context.Context, path string, opts Options) (*Verification, error) {
	p, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	v := &Verification{Path: path, Format: "hdf5", Corruptions: []Corruption{}, Unchecked: []string{}, Boxes: []string{},
		Unknown: []string{}}
	switch {
	case p.Flat:
		v.Format = "flat"
		err = v.flat(ctx, p, opts)
	case p.Zarr:
		v.Format = "zarr"
		err = v.zarr(ctx, p, opts)
	default:
		err = v.hdf5(ctx, p, opts)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(v.Corruptions, func(a, b Corruption) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.First, b.First),
			cmp.Compare(a.Offset, b.Offset))
	})
	if v.Whole = len(v.Corruptions) == 0; v.Whole {
		err = v.boxes(ctx, path)
	}
	return v, err
}

// boxes notes the boxes that do not fit their images. It reads records, so it runs only on a
// dataset without corruption.
func (v *Verification) boxes(ctx context.Context, path string) error {
	ds, err := mmapds.Open(path)
	if err != nil {
		return nil // only other programs can read the fields, so none is of boxes
	}
	defer ds.Close()
	for _, f := range ds.Schema().Fields {
		if f.Content != tensor.Boxes {
			continue
		}
		s, err := dataset.BoxesOf(ctx, ds, f)
		if err != nil {
			return err
		}
		if n := s.Outside + s.Inverted; n > 0 {
			v.Boxes = append(v.Boxes,
				fmt.Sprintf("field %q: %s of %s reach out of their images or are not boxes, in %s; the first is record %d",
					f.Name, units.Count(n), units.Counted(s.Count, "row"), units.Counted(s.Records, "record"), s.First))
		}
	}
	return nil
}

// flat verifies a flat dataset: its blocks if it can be opened, otherwise what salvage finds.
func (v *Verification) flat(ctx context.Context, p *dataset.Target, opts Options) error {
	d, err := p.Locate()
	m := (*store.Manifest)(nil)
	switch {
	case err == nil:
		m = d.Manifest
		err = v.blocks(ctx, d, nil, opts)
	default:
		if m = readManifest(p.Path); m == nil {
			return err
		}
		err = v.salvage(ctx, p.Path, m, opts)
	}
	if err != nil {
		return err
	}
	v.Records = m.Records // deleted records, too: their values are in the files
	folder := layout.Folder(p.Path)
	if v.Unknown, err = unknownFiles(folder, m); err != nil || d == nil || folder != p.Path {
		return err // a view is of the newest generation
	}
	return v.view(d)
}

// zarr verifies a Zarr dataset: all blocks of records, and all other files by the digests in the
// manifest.
func (v *Verification) zarr(ctx context.Context, p *dataset.Target, opts Options) error {
	d, err := p.Locate()
	if err == nil {
		err = v.blocks(ctx, d, nil, opts)
	}
	if err != nil {
		return err
	}
	var unknown []string
	v.Metadata, unknown, err = layout.Of(d).CheckZarr(d.Path, d.Manifest.Metadata)
	if err := v.unknownArrays(d, unknown); err != nil {
		return err
	}
	if errors.Is(err, store.ErrCorrupt) {
		v.Corruptions = append(v.Corruptions, Corruption{File: filepath.Base(p.Path), Problem: problem(err)})
		err = nil
	}
	return err
}

// unknownArrays lists files that belong neither to a generation of a Zarr dataset nor to a column
// that is being written.
func (v *Verification) unknownArrays(d *store.Dataset, files []string) error {
	numbers, err := store.Generations(d.Path)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, n := range numbers {
		m, _, err := store.ReadGeneration(d.Path, n)
		if err != nil {
			return err
		}
		for name := range m.Metadata {
			known[path.Dir(name)] = n != d.Manifest.Generation
		}
	}
	for _, name := range files {
		top, _, _ := strings.Cut(name, "/")
		if !known[path.Dir(name)] && top != layout.Generations && !write.IsColumnStage(top) {
			v.Unknown = append(v.Unknown, name)
		}
	}
	return nil
}

// view compares view.h5, if it exists, with the file that inspect view would write.
func (v *Verification) view(d *store.Dataset) error {
	problem, err := viewProblem(d)
	if problem != "" {
		v.Corruptions = append(v.Corruptions, Corruption{File: view.Name, Problem: problem})
	}
	return err
}

// readManifest returns the manifest of a folder, or nil if it cannot be read.
func readManifest(path string) *store.Manifest {
	m, err := store.ReadManifest(path)
	if err != nil {
		return nil
	}
	return m
}

// unknownFiles lists the files in the folder of a flat dataset that belong neither to the dataset
// nor to the mirror of remote datasets nor to a column that is being written.
func unknownFiles(path string, m *store.Manifest) ([]string, error) {
	known := map[string]bool{layout.ManifestName: true, view.Name: true, layout.Generations: true}
	if err := addNames(known, path, m); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	unknown := []string{}
	for _, e := range entries {
		if !known[e.Name()] && !mirror.Owns(e.Name()) && !write.IsColumnStage(e.Name()) {
			unknown = append(unknown, e.Name())
		}
	}
	return unknown, nil
}

// addNames adds the names of the files of all generations to known.
func addNames(known map[string]bool, path string, m *store.Manifest) error {
	numbers, err := store.Generations(path)
	if err != nil {
		numbers = nil // the manifest is corrupt, which was reported
	}
	for _, n := range append(numbers, m.Generation) {
		g := m
		if n != m.Generation {
			if g, _, err = store.ReadGeneration(path, n); err != nil {
				return err
			}
		}
		for _, s := range g.Shards {
			for _, f := range s.Files {
				known[f.Name] = true
			}
		}
	}
	return nil
}

// blocks compares all blocks of d with their checksums. If shardOf is not nil, extent k of field i
// is shard shardOf[i][k], see salvage.
func (v *Verification) blocks(ctx context.Context, d *store.Dataset, shardOf [][]int, opts Options) error {
	if opts.Begin != nil {
		opts.Begin(checkedBytes(d))
	}
	result, err := verify.Dataset(ctx, d, verify.Options{
		Workers: opts.Workers, Progress: opts.Progress,
		Corrupt: func(e *store.CorruptionError) {
			v.Corruptions = append(v.Corruptions, corruptionOf(d, e, shardOf))
		},
	})
	if err != nil {
		return err
	}
	v.Records, v.Bytes, v.Checksums = d.Records, result.Bytes, result.Blocks
	for _, field := range result.Unchecked {
		v.Unchecked = append(v.Unchecked, fmt.Sprintf("%s: it has no checksums", field))
	}
	return nil
}

// checkedBytes returns the bytes of all records that have checksums, the total of the progress.
func checkedBytes(d *store.Dataset) (n int64) {
	for _, c := range layout.Of(d).Columns {
		for _, e := range c.Extents {
			if e.SumsPath != "" {
				n += e.Count * int64(c.Spec.RecordBytes())
			}
		}
	}
	return n
}

// corruptionOf converts an error of package store/verify.
func corruptionOf(d *store.Dataset, from *store.CorruptionError, shardOf [][]int) Corruption {
	shard := from.Shard
	if shardOf != nil {
		shard = shardOf[d.Schema.Index(from.Field)][from.Shard]
	}
	return Corruption{
		Field: from.Field, Shard: shard, First: from.First, Last: from.Last,
		File: filepath.Base(from.Path), Offset: from.Offset, Problem: problem(from.Err),
	}
}

// problem returns the text of an error without ErrCorrupt, since everything here is corruption.
func problem(err error) string {
	text := err.Error()
	if errors.Is(err, store.ErrCorrupt) {
		text, _ = strings.CutSuffix(text, ": "+store.ErrCorrupt.Error())
	}
	return text
}

// metadata compares everything in an HDF5 file but records with the checksum that was stored when
// the file was written. If another program has rewritten the file since, there is no checksum,
// which is not corruption.
func (v *Verification) metadata(p *dataset.Target) error {
	var err error
	v.Metadata, err = seal.Check(p.File, p.Meta.Size)
	switch {
	case errors.Is(err, seal.ErrNone) && p.ByPenstock():
		v.Unchecked = append(v.Unchecked, "metadata: it has no checksum, as another program has rewritten the file")
	case errors.Is(err, seal.ErrNone):
	case errors.Is(err, store.ErrCorrupt):
		v.Corruptions = append(v.Corruptions, Corruption{File: filepath.Base(p.Path), Problem: problem(err)})
	default:
		return err
	}
	return nil
}

// hdf5 verifies an HDF5 file. A file of penstock has checksums of blocks; other files are checked
// by their structure and filters.
func (v *Verification) hdf5(ctx context.Context, p *dataset.Target, opts Options) error {
	if err := v.metadata(p); err != nil {
		return err
	}
	d, _, err := p.LocateOrTree()
	if err != nil && p.ByPenstock() {
		return err
	}
	if p.ByPenstock() {
		return v.blocks(ctx, d, nil, opts)
	}
	if err := v.foreign(ctx, p, opts); err != nil {
		return err
	}
	if len(v.Corruptions) == 0 && err != nil {
		return err
	}
	if d != nil {
		v.Records = d.Records
	}
	return nil
}
