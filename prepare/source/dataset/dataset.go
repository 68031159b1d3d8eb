// Package dataset reads sources that are datasets already: flat datasets, HDF5 files and Zarr of this module, and
// HDF5 files written by other programs.
//
// [OpenFlat], [OpenZarr] and [OpenHDF5] make an array.Column of each field and join them to a source. The fields
// come from the manifest with all that it knows (classes, layouts, normalization, splits, deleted records), so
// preprocess can convert a dataset from one container to another, or select fields of it, and loses nothing.
//
// Reading in order compares every block with the checksums of the dataset: a copy must not turn a flipped bit into
// a record with a correct checksum. Reading single records (At) does not, as it would have to read the whole block
// of each record.
package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/hdf5"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// OpenFlat opens a flat dataset of this module, local or in a bucket.
func OpenFlat(_ context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	d, err := readFlat(root, path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newDataset(root, d, opts, selection)
}

// readFlat opens the newest generation of a flat dataset, or the generation that the path names. It compares the
// sizes and headers of all files with the manifest, except in a bucket, where that would cost a request for each
// file.
func readFlat(root *vfs.Root, path string) (*store.Dataset, error) {
	folder, text, err := findManifest(root, path)
	if err != nil {
		return nil, err
	}
	opened, err := layout.OpenFlat(folder, text)
	if err != nil {
		return nil, err
	}
	d := opened.(*store.Dataset)
	// A shard that is cut short would otherwise show only in the middle of the copy.
	if !vfs.Mounted(path) {
		err = layout.CheckShards(files{root, folder}, d.Schema.Specs(), d.Manifest.Shards)
	}
	return d, err
}

// findManifest returns the folder of a dataset and the manifest of the newest generation, or of the generation that
// the path names.
func findManifest(root *vfs.Root, path string) (folder string, text []byte, err error) {
	folder, named, _ := source.SplitGeneration(path)
	_, text, err = store.Folder{FS: files{root, folder}, Name: folder}.Find(named)
	return folder, text, err
}

// OpenZarr is OpenFlat for a Zarr store that penstock wrote. files returns the files of a folder.
func OpenZarr(root *vfs.Root, path string, files func(folder string) zarr.Files, opts source.Options,
	selection []column.Selection) (
	source.Source, error) {
	d, err := readZarr(root, path, files)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newDataset(root, d, opts, selection)
}

// readZarr opens the newest generation of a Zarr store, or the generation that the path names.
func readZarr(root *vfs.Root, path string, files func(folder string) zarr.Files) (*store.Dataset, error) {
	folder, text, err := findManifest(root, path)
	if err != nil {
		return nil, err
	}
	opened, err := layout.OpenZarr(folder, files(folder), text)
	if err != nil {
		return nil, err
	}
	return opened.(*store.Dataset), nil
}

// files is the folder of a dataset as an fs.FS, confined to root.
type files struct {
	root   *vfs.Root
	folder string
}

// Open implements fs.FS.
func (s files) Open(name string) (fs.File, error) {
	f, err := s.root.Open(filepath.Join(s.folder, filepath.FromSlash(name)))
	if err != nil {
		return nil, err // not a nil File of another type
	}
	return f, nil
}

// ReadDir implements fs.ReadDirFS.
func (s files) ReadDir(name string) ([]fs.DirEntry, error) {
	return s.root.ReadDir(filepath.Join(s.folder, filepath.FromSlash(name)))
}

// ReadFlat opens the flat dataset in a folder. In a bucket it reads only manifest.json and looks for no later
// generation: it is for the part of a rank, which is never changed after it was written.
func ReadFlat(path string) (*store.Dataset, error) {
	if !vfs.Mounted(path) {
		return store.OpenFlat(path)
	}
	root, err := source.OpenRoot(path, source.Options{})
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := root.ReadFile(filepath.Join(path, layout.ManifestName), nil, source.MaxList)
	if err != nil {
		return nil, err
	}
	opened, err := layout.OpenFlat(path, data)
	if err != nil {
		return nil, err
	}
	return opened.(*store.Dataset), nil
}

// newDataset returns the source of a dataset. It owns root on success.
func newDataset(root *vfs.Root, d *store.Dataset, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	if opts.NoNames {
		d = d.WithoutSourceNames()
	}
	readers, closers, err := openChunked(root, d)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", d.Path, err)
	}
	files := &openFiles{root: root}
	closers = append(closers, files, root)
	var columns []array.Column
	for i, f := range d.Schema.Fields {
		columns = append(columns, datasetColumn(d, i, f, readers, files))
	}
	chosen, err := array.Select(columns, selection)
	if err != nil {
		return nil, errors.Join(err, closeEach(closers))
	}
	if i := layout.SourceNames(d.Schema.Specs()); i >= 0 && !slices.ContainsFunc(chosen, func(c array.Column) bool {
		return c.Field.Content == tensor.SourceName
	}) {
		chosen = append(chosen, columns[i]) // whichever fields are chosen, records keep their names
	}
	columns = chosen
	s, err := array.New(d.Format, d.Path, source.BaseName(d.Path), columns, closers...)
	if err != nil || d.Manifest == nil {
		return s, err
	}
	if len(d.Manifest.Splits) > 0 {
		s = source.NewSplitSource(s, d.Manifest.Splits)
	}
	if d.Manifest.Deleted == nil {
		return s, nil
	}
	gone, err := d.Manifest.Deleted.Words(d.Records)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return source.Without(s, gone), nil
}

// datasetColumn returns the column of field i of a dataset.
func datasetColumn(d *store.Dataset, i int, f store.Field, readers chunkReaders, files *openFiles) array.Column {
	c := array.Column{Field: source.Field{Field: f, Origin: f.Name, Derived: f.Content == tensor.SourceName,
		Stored: true}, Count: d.Records}
	if !f.Ragged {
		whole, size := layout.Of(d).Column(i, layout.Whole), f.RecordBytes()
		fixed := array.Fixed{Size: size}
		c.Open = func() (array.Cursor, error) {
			return fixed.Cursor(&extentReader{root: files.root, extents: whole.Extents,
				size: size, chunked: readers[whole.Name]}, d.Records), nil
		}
		c.At = func(i int64, buf []byte) ([]byte, error) {
			buf = slices.Grow(buf, size)[:size]
			e, _ := whole.Extent(i)
			return buf, readRows(readers[whole.Name], files, e, i-e.First, size, buf)
		}
		return c
	}
	r := &ragged{values: layout.Of(d).Column(i, layout.Values), offsets: layout.Of(d).Column(i, layout.Offsets),
		size: f.RecordBytes(), files: files}
	r.index = layout.NewRaggedIndex(r.offsets, r.values)
	r.chunked = readers[r.values.Name]
	c.Open = func() (array.Cursor, error) { return r.cursor(), nil }
	c.At = r.at
	return c
}

// readFile fills b with the bytes of a file from offset on. It reads checksums, which are needed once, so the file
// is not kept open.
func (r *extentReader) readFile(path string, b []byte, offset int64) error {
	if len(b) == 0 {
		return nil
	}
	f, err := r.root.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return source.ReadAt(f, b, offset)
}

// extentReader reads the rows in a list of extents in order, and compares each block with its checksum. An extent
// is a run of rows in one file (a shard).
//
// An extent has its own list of checksums, one for each block of BlockRecords rows, and the last block is shorter.
// A checksum is compared when the last byte of its block has been read, so the bytes of a wrong block may have been
// returned before; the error then ends the source.
type extentReader struct {
	root    *vfs.Root
	extents []layout.Extent
	size    int           // bytes of a row
	chunked *chunk.Reader // decompresses the rows; nil if they are stored as they are
	path    string
	file    io.ReadCloser
	left    int64            // unread bytes of the current extent
	sums    layout.Checksums // of the blocks of the extent from the current one on; nil if it has none
	crc     uint32           // of the current block so far
	room    int64            // bytes until the end of the current block
}

// Read implements io.Reader.
func (r *extentReader) Read(p []byte) (int, error) {
	// Extents without rows are skipped.
	for r.left == 0 {
		if len(r.extents) == 0 {
			return 0, io.EOF
		}
		if err := r.start(); err != nil {
			return 0, err
		}
	}
	n, err := io.ReadFull(r.file, p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err != nil {
		return n, array.CutShort(err)
	}
	if err := r.check(p[:n]); err != nil {
		return 0, err // io.ReadFull would not return an error with all bytes
	}
	return n, nil
}

// start opens the next extent, and loads its checksums.
func (r *extentReader) start() (err error) {
	e := r.extents[0]
	r.extents = r.extents[1:]
	if err := r.Close(); err != nil {
		return err
	}
	r.left, r.crc, r.sums = e.Count*int64(r.size), 0, nil
	if r.left == 0 {
		return nil
	}
	if e.SumsPath != "" {
		if r.sums, err = e.LoadChecksums(r.size, r.readFile); err != nil {
			return err
		}
	}
	r.room, r.path = r.block(), e.Path
	if r.chunked != nil {
		r.file = hdf5.NewStream(context.Background(), r.chunked, r.chunked.ChunkRecords(), e.Row)
		return nil
	}
	f, err := r.root.Open(e.Path)
	if err != nil {
		return err
	}
	r.file = f
	_, err = f.Seek(e.Offset, io.SeekStart)
	return err
}

// block returns the size of the next block in bytes: BlockRecords rows, or what is left of the extent.
func (r *extentReader) block() int64 {
	return min(layout.BlockRecords(r.size)*int64(r.size), r.left)
}

// check adds bytes that were read to the checksum of their block, and compares it at the end of the block.
func (r *extentReader) check(b []byte) error {
	if r.sums == nil {
		return nil
	}
	unread := r.left
	r.left += int64(len(b)) // as block counts from the bytes that are not checked
	defer func() { r.left = unread }()
	for len(b) > 0 {
		n := min(r.room, int64(len(b)))
		r.crc = kernel.CRC32C(r.crc, b[:n])
		b, r.left, r.room = b[n:], r.left-n, r.room-n
		if r.room > 0 {
			return nil
		}
		if err := r.sums.Compare(0, r.crc); err != nil {
			return fmt.Errorf("%s does not match its checksum: %w; %s reports where", r.path, err,
				shell.Penstock("inspect verify"))
		}
		r.sums, r.crc, r.room = r.sums[4:], 0, r.block()
	}
	return nil
}

// Close implements io.Closer.
func (r *extentReader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// ragged reads a field whose records have any number of rows: the rows of all records in values, and in offsets
// where each record ends.
type ragged struct {
	values, offsets *layout.Column
	index           layout.RaggedIndex
	size            int           // bytes of a row
	chunked         *chunk.Reader // decompresses the values; nil if they are stored as they are
	files           *openFiles
}

// at appends record i to buf. It reads three offsets: the first of the extent, and the two around the record. Walk
// checks them before memory is allocated for their difference.
func (g *ragged) at(i int64, buf []byte) ([]byte, error) {
	// Offsets are stored for each extent, from its first record on, so one more than records.
	k := g.index.Find(i)
	e, offsets := &g.index.Extents[k], g.offsets.Extents[k]
	var b [24]byte
	err := g.files.readAt(offsets.Path, b[:8], offsets.Offset)
	if err == nil {
		err = g.files.readAt(offsets.Path, b[8:], offsets.Offset+8*(i-e.First))
	}
	if err != nil {
		return buf, err
	}
	word := func(k int) int64 { return int64(binary.LittleEndian.Uint64(b[8*k:])) }
	w, err := e.Walk(i-e.First, word(0), word(1))
	if err != nil {
		return buf, err
	}
	row := w.Row()
	rows, err := w.Next(word(2))
	if err != nil {
		return buf, err
	}
	if rows > source.MaxValue/int64(g.size) {
		return buf, fmt.Errorf("a record of %d rows of %d bytes, more than %d bytes", rows, g.size, source.MaxValue)
	}
	n := int(rows) * g.size
	buf = slices.Grow(buf, n)[:n]
	return buf, readRows(g.chunked, g.files, g.values.Extents[k], row, g.size, buf)
}

func (g *ragged) cursor() array.Cursor {
	return &raggedCursor{
		ragged:  g,
		values:  &extentReader{root: g.files.root, extents: g.values.Extents, size: g.size, chunked: g.chunked},
		offsets: &extentReader{root: g.files.root, extents: g.offsets.Extents, size: 8},
	}
}

// raggedCursor reads the records of a ragged field in order.
type raggedCursor struct {
	*ragged
	values, offsets *extentReader
	extent          int   // index of the next extent
	left            int64 // unread records of the current extent
	walk            layout.Walk
}

// Next returns the rows of the next record. Offsets and values are read side by side, each in order. Every offset is
// checked against the offset before and the end of its extent, before a slice is made of their difference.
func (c *raggedCursor) Next() ([]byte, error) {
	for c.left == 0 {
		if c.extent == len(c.index.Extents) {
			return nil, io.EOF
		}
		e := &c.index.Extents[c.extent]
		first, err := c.offset()
		if err == nil {
			c.walk, err = e.Walk(0, first, first)
		}
		if err != nil {
			return nil, err
		}
		c.left = e.Count
		c.extent++
	}
	end, err := c.offset()
	if err != nil {
		return nil, err
	}
	rows, err := c.walk.Next(end)
	if err != nil {
		return nil, err
	}
	if rows > source.MaxValue/int64(c.size) {
		return nil, fmt.Errorf("a record of %d rows of %d bytes, more than %d bytes", rows, c.size, source.MaxValue)
	}
	b := make([]byte, rows*int64(c.size))
	if _, err := io.ReadFull(c.values, b); err != nil {
		return nil, err
	}
	c.left--
	return b, nil
}

func (c *raggedCursor) offset() (int64, error) {
	var b [8]byte
	_, err := io.ReadFull(c.offsets, b[:])
	return int64(binary.LittleEndian.Uint64(b[:])), err
}

func (c *raggedCursor) Close() error { return errors.Join(c.values.Close(), c.offsets.Close()) }

// OpenRecords opens some fields, by their positions in schema, of a flat dataset. The dataset must have exactly the
// fields of schema and no splits; otherwise it is corrupt.
func OpenRecords(d *store.Dataset, schema store.Schema, fields []int) (source.Source, error) {
	same := len(d.Manifest.Splits) == 0 && len(d.Schema.Fields) == len(schema.Fields)
	for i := 0; same && i < len(schema.Fields); i++ {
		a, b := d.Schema.Fields[i].Spec, schema.Fields[i].Spec
		same = a.Name == b.Name && a.DType == b.DType && a.Ragged == b.Ragged && slices.Equal(a.Shape, b.Shape)
	}
	if !same {
		return nil, fmt.Errorf("%s: has other fields than it must have: %w", d.Path, store.ErrCorrupt)
	}
	var names []string
	for _, i := range fields {
		names = append(names, schema.Fields[i].Name)
	}
	d, err := d.Select(names)
	if err != nil {
		return nil, err
	}
	root, err := source.OpenRoot(d.Path, source.Options{})
	if err != nil {
		return nil, source.WithoutPath(err)
	}
	return newDataset(root, d, source.Options{}, nil)
}
