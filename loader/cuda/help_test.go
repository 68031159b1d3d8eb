package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// memory is a Source in memory: images of bytes, and labels, which both hold the record number.
type memory struct {
	n      int
	shape  tensor.Shape
	images []byte
	labels []byte
	leases atomic.Int64
	broken int // record that cannot be read; -1 none
}

func newSource(n int, shape tensor.Shape) *memory {
	m := &memory{n: n, shape: shape, broken: -1}
	size := shape.Elems()
	m.images = make([]byte, n*size)
	m.labels = make([]byte, n*8)
	for r := range n {
		for i := range size {
			m.images[r*size+i] = pixel(r, i)
		}
		binary.LittleEndian.PutUint64(m.labels[r*8:], uint64(r)*1000003)
	}
	return m
}

// pixel is byte i of record r.
func pixel(r, i int) byte { return byte(r*31 + i*7 + i>>8 + r>>3) }

func (m *memory) Len() int { return m.n }

func (m *memory) Specs() []tensor.Spec {
	return []tensor.Spec{{Name: "images", DType: tensor.Uint8, Shape: m.shape}, {Name: "labels", DType: tensor.Int64}}
}

func (m *memory) field(name string) (tensor.Spec, []byte) {
	if name == "images" {
		return m.Specs()[0], m.images
	}
	return m.Specs()[1], m.labels
}

func (m *memory) Slice(field string, a, b int) (tensor.View, error) {
	spec, data := m.field(field)
	r := spec.RecordBytes()
	return tensor.Of(spec, b-a, data[a*r:b*r]), nil
}

var errBroken = errors.New("the record is broken")

func (m *memory) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	spec, data := m.field(field)
	r := spec.RecordBytes()
	for i, x := range indices {
		if x == m.broken {
			return errBroken
		}
		copy(dst[i*r:(i+1)*r], data[x*r:])
	}
	return ctx.Err()
}

func (m *memory) Prefetch(string, int, int) error { return nil }
func (m *memory) Retain() error                   { m.leases.Add(1); return nil }
func (m *memory) Release()                        { m.leases.Add(-1) }

// rig is everything that a test of the pipeline needs.
type rig struct {
	devices []*Device
	streams []Stream // one per device, of the consumer
	ld      *loader.Loader
	pf      *Prefetcher
	seen    []seen
}

// seen is the content of a batch when the consumer's stream read it.
type seen struct {
	dev     *Device
	indices []int
	fields  map[string][]byte
}

// config says how to make a rig.
type config struct {
	src      loader.Source
	devices  int
	loader   loader.Options
	opts     Options
	unpinned bool // the Loader has ordinary memory
}

// open makes everything. Whatever was made is in the rig even if there is an error.
func (c config) open() (*rig, error) {
	r := &rig{}
	for i := range max(1, c.devices) {
		d, err := Open(i)
		if err != nil {
			return r, err
		}
		r.devices = append(r.devices, d)
		s, err := d.NewStream()
		if err != nil {
			return r, err
		}
		r.streams = append(r.streams, s)
	}
	if !c.unpinned {
		c.loader.Allocator = r.devices[0].Allocator()
	}
	var err error
	if r.ld, err = loader.New(c.src, c.loader); err != nil {
		return r, err
	}
	c.opts.Devices = r.devices
	r.pf, err = New(r.ld, c.opts)
	return r, err
}

// mustOpen is open for tests in which nothing fails.
func (c config) mustOpen(t testing.TB) *rig {
	t.Helper()
	r, err := c.open()
	require.NoError(t, err)
	return r
}

// close ends everything, in the order in which it must be.
func (r *rig) close() error {
	var errs []error
	if r.pf != nil {
		errs = append(errs, r.pf.Close())
	}
	for i, s := range r.streams {
		errs = append(errs, r.devices[i].SynchronizeStream(s))
	}
	errs = append(errs, r.forget())
	r.seen = nil
	if r.ld != nil {
		errs = append(errs, r.ld.Close())
	}
	for i, s := range r.streams {
		errs = append(errs, r.devices[i].FreeStream(s))
	}
	for _, d := range r.devices {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// forget returns the batches that the consumer has seen; none of them is under way.
func (r *rig) forget() error {
	var errs []error
	for _, s := range r.seen {
		for _, b := range s.fields {
			errs = append(errs, s.dev.unpin(b))
		}
	}
	r.seen = nil
	return errors.Join(errs...)
}

func (r *rig) mustClose(t testing.TB) {
	t.Helper()
	if err := r.close(); err != nil {
		t.Error("close: ", err)
	}
}

// consume queues work that reads the fields of a batch, and ends the batch after it. It
// waits for nothing.
func (r *rig) consume(b Batch, fields ...string) error {
	d := b.Device()
	stream := r.streams[b.Step()%len(r.devices)]
	if err := b.Wait(stream); err != nil {
		return err
	}
	s := seen{d, append([]int(nil), b.Indices()...), make(map[string][]byte)}
	for _, name := range fields {
		if err := r.read(b.Field(name), name, stream, s); err != nil {
			return err
		}
	}
	r.seen = append(r.seen, s)
	return b.Done(stream)
}

// read queues a copy of a field to the host.
func (r *rig) read(x Tensor, name string, stream Stream, s seen) error {
	dst, err := s.dev.pin(x.Bytes())
	if err != nil {
		return err
	}
	s.fields[name] = dst
	if err := s.dev.readAsync(dst, x.Ptr, stream); err != nil {
		r.seen = append(r.seen, s)
		return err
	}
	return nil
}

// readAsync queues a copy to page-locked memory.
func (d *Device) readAsync(dst []byte, src uint64, stream Stream) error {
	return d.do("cuMemcpyDtoHAsync", func() Result {
		return d.drv.MemcpyDtoHAsync(addressOf(dst), src, uintptr(len(dst)), uintptr(stream))
	})
}

// check waits for the streams and compares what they saw with the Source.
func (r *rig) check(src *memory) error {
	for i, s := range r.streams {
		if err := r.devices[i].SynchronizeStream(s); err != nil {
			return err
		}
	}
	for step, s := range r.seen {
		for name, got := range s.fields {
			if err := compare(src, name, s.indices, got); err != nil {
				return fmt.Errorf("batch %d: %w", step, err)
			}
		}
	}
	return nil
}

func compare(src *memory, name string, indices []int, got []byte) error {
	spec, data := src.field(name)
	r := spec.RecordBytes()
	if len(got) != len(indices)*r {
		return fmt.Errorf("field %s: %d bytes for %d records", name, len(got), len(indices))
	}
	for i, x := range indices {
		if string(got[i*r:(i+1)*r]) != string(data[x*r:(x+1)*r]) {
			return fmt.Errorf("field %s: record %d at place %d has other bytes", name, x, i)
		}
	}
	return nil
}

func addressOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
