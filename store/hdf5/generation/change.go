package generation

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5/seal"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// change is the HDF5 file of a dataset while it is changed. Nobody else changes it.
type change struct {
	file    *os.File
	head    []byte // the superblock of the newest generation
	end     int64  // the size of the newest generation, with its seal
	newest  *store.Manifest
	history layout.HDF5History

	committed bool
	release   []func()
}

// open locks the file at path, and reads its newest generation. Bytes that were never committed are cut off.
func open(path string) (c *change, err error) {
	release, err := write.HoldFile(path)
	if err != nil {
		return nil, err
	}
	c = &change{release: []func(){release}}
	if err := c.open(path); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *change) open(path string) (err error) {
	held, err := lease.Shared("", path) // libhdf5 locks files that it changes alone
	if errors.Is(err, lease.ErrBusy) {
		return fmt.Errorf("another program has it open to change it: %w", store.ErrBusy)
	}
	if err != nil {
		return layout.WithoutPath(err)
	}
	c.release = append(c.release, func() { _ = held.Close() })
	if c.file, err = openWritable(path); err != nil {
		return layout.WithoutPath(err)
	}
	info, err := c.file.Stat()
	if err != nil {
		return layout.WithoutPath(err)
	}
	if c.end, err = seal.End(c.file, info.Size()); errors.Is(err, seal.ErrNone) {
		return fmt.Errorf("another program has changed the file, so it is left as it is; write a new one: %s: %w",
			shell.Rewrite(path, ""), store.ErrUnsupported)
	}
	if err != nil {
		return layout.WithoutPath(err)
	}
	if err := c.read(); err != nil {
		return layout.Mark(err)
	}
	if info.Size() > c.end {
		return layout.WithoutPath(c.file.Truncate(c.end))
	}
	return nil
}

// openWritable opens a file for changes. Writers of datasets leave files that only their owner can make writable again.
func openWritable(path string) (*os.File, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	name := filepath.Base(path)
	f, err := folder.OpenFile(name, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	info, statErr := folder.Stat(name)
	if statErr != nil || folder.Chmod(name, info.Mode().Perm()|0o200) != nil {
		return nil, err
	}
	f, err = folder.OpenFile(name, os.O_RDWR, 0)
	return f, errors.Join(err, folder.Chmod(name, info.Mode().Perm()))
}

// read reads the newest generation.
func (c *change) read() error {
	file, err := meta.Open(c.file, c.end)
	if err != nil {
		return err
	}
	n, err := layout.HDF5HeadOf(file)
	if err != nil {
		return err
	}
	c.head = make([]byte, n)
	if _, err := c.file.ReadAt(c.head, 0); err != nil {
		return err
	}
	if c.history, err = layout.ReadHDF5History(file); err != nil {
		return err
	}
	d, err := dataset(file)
	if err != nil {
		return err
	}
	c.newest = d.Manifest
	return nil
}

func dataset(file *meta.File) (*store.Dataset, error) {
	d, err := layout.OpenHDF5("", file, nil, layout.Undone)
	if err != nil {
		return nil, err
	}
	return d.(*store.Dataset), nil
}

// close lets others change the file. Bytes that were not committed are cut off.
func (c *change) close() {
	if c.file != nil {
		if !c.committed && c.newest != nil {
			_ = c.file.Truncate(c.end) // or the next change does
		}
		_ = c.file.Close()
	}
	for i := range c.release {
		c.release[len(c.release)-1-i]()
	}
}

// columns returns the objects of a revision's columns. Those with new values are written to the end of the file.
func (c *change) columns(r *write.Revision) (*parts, error) {
	file, err := layout.OpenHDF5Generation(c.file, c.end, strconv.Itoa(r.Of))
	if err != nil {
		return nil, err
	}
	from, err := dataset(file.File)
	if err != nil {
		return nil, err
	}
	for _, f := range r.Manifest.Fields {
		if err := checkName(f.Name); err != nil {
			return nil, err
		}
	}
	p := &parts{end: c.end}
	for _, column := range layout.Columns(r.Manifest.Schema().Specs()) {
		origin := r.Columns[column.Field]
		var pair []encode.Object
		if origin.Rows != nil {
			pair, err = c.write(p, column, origin)
		} else {
			pair, err = existing(file.File, column, layout.Of(from).Column(from.Schema.Index(origin.Field), column.Part))
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", column.Name, err)
		}
		p.objects = append(p.objects, pair...)
	}
	return p, nil
}

// existing describes a column whose rows and checksums are those of one in the file.
func existing(file *meta.File, column layout.Column, from *layout.Column) ([]encode.Object, error) {
	rows, err := file.Dataset(from.Path())
	if err != nil {
		return nil, err
	}
	sums, err := file.Dataset(from.SumsPath())
	if err != nil {
		return nil, err
	}
	values := encode.Object{Path: column.Path(), Element: encode.Element{DType: column.Spec.DType}, Dims: rows.Dims}
	if rows.Layout.Kind == meta.Chunked {
		recipe, ok := encode.RecipeOf(rows, column.Spec.RecordBytes(), column.Spec.DType.Size())
		if !ok || rows.Layout.Version > 3 {
			return nil, fmt.Errorf("its chunks are not those that penstock writes: %w", store.ErrUnsupported)
		}
		values.Chunked = &encode.Chunked{Recipe: recipe, Tree: max(0, rows.Layout.IndexAt)}
	} else {
		values.At = max(0, rows.Layout.Offset)
	}
	return []encode.Object{values, {
		Path: column.SumsPath(), Element: encode.Element{DType: tensor.Uint32}, Dims: sums.Dims,
		At: max(0, sums.Layout.Offset),
	}}, nil
}

// pageAlign is the alignment of rows, so that they can be mapped.
const pageAlign = 4096

// write writes the rows of a column to the end of the file.
func (c *change) write(p *parts, column layout.Column, from write.Origin) ([]encode.Object, error) {
	staged := from.Rows
	columns := [][]layout.Column{staged}
	k := 0
	for staged[k].Part != column.Part {
		k++
	}
	values := encode.Object{Path: column.Path(), Element: encode.Element{DType: column.Spec.DType}, Dims: []int64{
		write.ConcatColumns(columns)[k].Rows}}
	for _, n := range column.Spec.Shape {
		values.Dims = append(values.Dims, int64(n))
	}
	at := (p.end + pageAlign - 1) / pageAlign * pageAlign
	start, blocks := at, write.NewBlockSums(column.Spec.RecordBytes())
	add := func(rows []byte) error {
		blocks.Add(rows, layout.CRC32C(rows))
		_, err := c.file.WriteAt(rows, at)
		at += int64(len(rows))
		return layout.WithoutPath(err)
	}
	var err error
	if from.Replay != nil {
		err = from.Replay(add)
	} else {
		err = write.ConcatRows(columns, k, add)
	}
	if err != nil {
		return nil, err
	}
	blocks.End()
	sums := encode.Object{Path: column.SumsPath(), Element: encode.Element{DType: tensor.Uint32}, Dims: []int64{
		int64(len(blocks.Done))}}
	for _, crc := range blocks.Done {
		sums.Data = binary.LittleEndian.AppendUint32(sums.Data, crc)
	}
	if from.Replay != nil {
		if err := write.CheckReplayed(&staged[k], sums.Data); err != nil {
			return nil, err
		}
	}
	if at > start {
		values.At, p.end = start, at
	}
	return []encode.Object{values, sums}, nil
}
