package main

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"syscall"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/mmapds"
)

// reader is this module's contender.
type reader interface {
	read(order []int) error
	sum() (int64, error)
	close()
}

// chunkReader inflates.
type chunkReader struct {
	file  []byte
	pool  *chunk.Pool
	r     *chunk.Reader
	batch int
	buf   []byte
}

func openFile(path string) ([]byte, *meta.Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	meta, err := meta.Open(bytes.NewReader(b), info.Size())
	if err != nil {
		return nil, nil, err
	}
	d, err := meta.Dataset("x")
	return b, d, err
}

func openChunks(path string, workers, batch int) (reader, error) {
	b, d, err := openFile(path)
	if err != nil {
		return nil, err
	}
	c := &chunkReader{file: b, pool: chunk.NewPool(workers), batch: batch}
	c.r, err = chunk.NewMapped(b, d, chunk.Options{Pool: c.pool})
	if err == nil {
		c.buf = make([]byte, batch*c.r.RecordBytes())
	}
	return c, err
}

func (c *chunkReader) read(order []int) error {
	for ; len(order) > 0; order = order[min(c.batch, len(order)):] {
		some := order[:min(c.batch, len(order))]
		if err := c.r.Gather(context.Background(), c.buf[:len(some)*c.r.RecordBytes()], some); err != nil {
			return err
		}
	}
	return nil
}

func (c *chunkReader) sum() (int64, error) {
	b := make([]byte, c.r.Len()*int64(c.r.RecordBytes()))
	err := c.r.Records(context.Background(), b, 0, c.r.Len())
	return int64(crc32.ChecksumIEEE(b)), err
}

func (c *chunkReader) close() {
	c.pool.Close()
	_ = syscall.Munmap(c.file)
}

// mappedReader copies records out of a mapping, batch at a time.
type mappedReader struct {
	d     *mmapds.Dataset
	batch int
	buf   []byte
}

func openMapped(path string, batch int) (*mappedReader, error) {
	d, err := mmapds.Open(path)
	if err != nil {
		return nil, err
	}
	return &mappedReader{d: d, batch: batch, buf: make([]byte, batch*d.Specs()[0].RecordBytes())}, nil
}

func (m *mappedReader) read(order []int) error {
	size := len(m.buf) / m.batch
	for ; len(order) > 0; order = order[min(m.batch, len(order)):] {
		some := order[:min(m.batch, len(order))]
		if err := m.d.Gather(context.Background(), "x", some, m.buf[:len(some)*size]); err != nil {
			return err
		}
	}
	return nil
}

func (m *mappedReader) sum() (int64, error) {
	v, err := m.d.Slice("x", 0, m.d.Len())
	return int64(crc32.ChecksumIEEE(v.Bytes())), err
}

func (m *mappedReader) close() { m.d.Close() }

// recordReader asks for records one by one. It copies each record or, with view, only touches
// each of its cache lines.
type recordReader struct {
	*mappedReader
	records *mmapds.Records
	view    bool
	seen    byte
}

// overReader gets the order first, and then returns the records one by one.
type overReader struct{ *recordReader }

func openRecords(path string) (reader, error) { return openOneByOne(path, false) }
func openViews(path string) (reader, error)   { return openOneByOne(path, true) }

func openOver(path string) (reader, error) {
	r, err := openOneByOne(path, false)
	return overReader{r}, err
}

func openOverViews(path string) (reader, error) {
	r, err := openOneByOne(path, true)
	return overReader{r}, err
}

func openOneByOne(path string, view bool) (*recordReader, error) {
	m, err := openMapped(path, 1)
	if err != nil {
		return nil, err
	}
	r, err := m.d.Records("x")
	return &recordReader{mappedReader: m, records: r, view: view}, err
}

func (r *recordReader) read(order []int) error {
	for _, i := range order {
		b, err := r.records.At(i)
		if err != nil {
			return err
		}
		r.use(b)
	}
	return nil
}

func (r overReader) read(order []int) error {
	for b, err := range r.records.Iter(order) {
		if err != nil {
			return err
		}
		r.use(b)
	}
	return nil
}

func (r *recordReader) use(b []byte) {
	if !r.view {
		copy(r.buf, b)
		return
	}
	seen := byte(0)
	for ; len(b) > 0; b = b[min(64, len(b)):] {
		seen ^= b[0]
	}
	r.seen ^= seen // so that nothing is optimized away
}

// countChunks reads the index of a file from scratch.
func countChunks(path string) (int64, error) {
	b, d, err := openFile(path)
	if err != nil {
		return 0, err
	}
	table, err := d.Chunks()
	if err != nil {
		return 0, err
	}
	if err := syscall.Munmap(b); err != nil {
		return 0, fmt.Errorf("unmap: %w", err)
	}
	return int64(len(table.Chunks)), nil
}
