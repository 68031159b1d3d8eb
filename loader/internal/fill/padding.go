package fill

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/penstock/penstock/loader/internal/padding"
	"github.com/penstock/penstock/tensor"
)

// Height and Width are placeholders in Padding.Shape for the height and width of a batch, which are known once all of
// its records are decoded.
const (
	Height = -1
	Width  = -2
)

// Padding is how images, or masks on them, of several sizes become one array in each batch: each is padded at the right
// and at the bottom to the largest of the batch.
type Padding struct {
	Shape    tensor.Shape // of a record with Height and Width; of a row of Instances
	Sizes    int          // the field that has height and width of each record, two int64
	Multiple int          // of which height and width of a batch are
	Value    []byte       // of an element
	// a record has any number of rows, one an instance
	Instances bool
}

// SizeBytes is the length of a record of the field of sizes.
const SizeBytes = 16

// PutSize writes a record of the field of sizes.
func PutSize(dst []byte, height, width int) {
	binary.NativeEndian.PutUint64(dst, uint64(height))
	binary.NativeEndian.PutUint64(dst[8:], uint64(width))
}

func sizeAt(sizes []byte, i int) (height, width int) {
	sizes = sizes[i*SizeBytes:]
	return int(binary.NativeEndian.Uint64(sizes)), int(binary.NativeEndian.Uint64(sizes[8:]))
}

// shape returns Shape for a batch of that height and width.
func (p *Padding) shape(height, width int) tensor.Shape {
	out := slices.Clone(p.Shape)
	for i, n := range out {
		switch n {
		case Height:
			out[i] = height
		case Width:
			out[i] = width
		}
	}
	return out
}

// planes returns how many planes a record, or an instance, of the field has, and the elements of each of their pixels.
func (p *Padding) planes() (count, elements int) {
	at := slices.Index(p.Shape, Height)
	return p.Shape[:at].Elems(), p.Shape[at+2:].Elems()
}

// largest returns height and width of a batch of n records.
func (p *Padding) largest(sizes []byte, n int) (height, width int) {
	for i := range n {
		h, w := sizeAt(sizes, i)
		height, width = max(height, h), max(width, w)
	}
	up := func(v int) int { return (v + p.Multiple - 1) / p.Multiple * p.Multiple }
	return up(height), up(width)
}

// padPlane writes a plane of as many rows and bytes a row as from says to one of to.
func padPlane(dst, src []byte, from, to [2]int, value []byte) {
	for y := range from[0] {
		row := dst[y*to[1] : (y+1)*to[1]]
		padding.Fill(row[copy(row, src[y*from[1]:(y+1)*from[1]]):], value)
	}
	padding.Fill(dst[from[0]*to[1]:to[0]*to[1]], value)
}

// spare recycles the memory of records that were padded, for the records of later batches.
type spare struct {
	mu   sync.Mutex
	list [][]byte // under mu
}

// mostSpare is how many records' memory is kept.
const mostSpare = 256

func (s *spare) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(b) > 0 && len(s.list) < mostSpare {
		s.list = append(s.list, b[:0])
	}
}

func (s *spare) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list) - 1
	if n < 0 {
		return nil
	}
	b := s.list[n]
	s.list = s.list[:n]
	return b
}
