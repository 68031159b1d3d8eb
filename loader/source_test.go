package loader_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/penstock/penstock/tensor"
)

// memory is a Source in memory: "x" is width bytes that say the record and the byte's
// place, "y" an int64 label, the record's number times three.
type memory struct {
	specs  []tensor.Spec
	data   [][]byte // of each field
	n      int
	pieces int // records in one piece of memory; 0 means all

	nowhere bool // there are no views at all

	held       atomic.Int64 // Retains without Release
	closed     atomic.Bool
	prefetched atomic.Int64 // calls
	before     func(ctx context.Context, field string, indices []int) error
}

func newMemorySource(n, width int) *memory {
	m := &memory{n: n, specs: []tensor.Spec{
		{Name: "x", DType: tensor.Uint8, Shape: tensor.Shape{width}},
		{Name: "y", DType: tensor.Int64},
	}}
	m.data = [][]byte{make([]byte, n*width), make([]byte, n*8)}
	for i := range n {
		for j := range width {
			m.data[0][i*width+j] = pixel(i, j)
		}
		binary.LittleEndian.PutUint64(m.data[1][i*8:], uint64(3*i))
	}
	return m
}

func pixel(record, place int) byte { return byte(record*7 + record>>8*13 + place) }

func (m *memory) Len() int             { return m.n }
func (m *memory) Specs() []tensor.Spec { return m.specs }

func (m *memory) field(name string) (tensor.Spec, []byte) {
	for i, s := range m.specs {
		if s.Name == name {
			return s, m.data[i]
		}
	}
	panic("no field " + name)
}

func (m *memory) Contiguous(_ string, a, b int) bool {
	return !m.nowhere && (m.pieces == 0 || a/m.pieces == (b-1)/m.pieces)
}

func (m *memory) Slice(field string, a, b int) (tensor.View, error) {
	if !m.Contiguous(field, a, b) {
		panic(fmt.Sprintf("Run over pieces: %d to %d", a, b))
	}
	if m.held.Load() == 0 {
		panic("Run without Retain")
	}
	if m.before != nil {
		var indices []int
		for i := a; i < b; i++ {
			indices = append(indices, i)
		}
		if err := m.before(context.Background(), field, indices); err != nil {
			return tensor.View{}, err
		}
	}
	spec, data := m.field(field)
	size := spec.RecordBytes()
	return tensor.Of(spec, b-a, data[a*size:b*size:b*size]), nil
}

func (m *memory) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	if m.before != nil {
		if err := m.before(ctx, field, indices); err != nil {
			return err
		}
	}
	spec, data := m.field(field)
	size := spec.RecordBytes()
	if len(dst) != size*len(indices) {
		panic("dst has another length")
	}
	for i, r := range indices {
		copy(dst[i*size:(i+1)*size], data[r*size:])
	}
	return nil
}

func (m *memory) Prefetch(_ string, a, b int) error {
	if a < 0 || b <= a || b > m.n {
		panic("Prefetch of records that do not exist")
	}
	m.prefetched.Add(1)
	return nil
}

// leases returns how many Retains have no Release yet.
func (m *memory) leases() int64 { return m.held.Load() }

var errSourceClosed = errors.New("memory: closed")

func (m *memory) Retain() error {
	if m.closed.Load() {
		return errSourceClosed
	}
	m.held.Add(1)
	return nil
}

func (m *memory) Release() {
	if m.held.Add(-1) < 0 {
		panic("Release without Retain")
	}
}
