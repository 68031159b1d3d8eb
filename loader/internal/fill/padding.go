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

// Padding says how images of several sizes, or masks on them, become one array in each batch: every
// image is padded at the right and at the bottom to the largest of the batch. Boxes and keypoints
// keep their coordinates, since the upper left corner stays in place.
type Padding struct {
	Shape    tensor.Shape // of a record with Height and Width; of a row of Instances
	Sizes    int          // the field that has height and width of each record, two int64
	Multiple int          // height and width of a batch are multiples of it
	Value    []byte       // one element of padding
	// a record has any number of rows, one an instance
	Instances bool
}

// SizeBytes is the length of a record in the field of sizes: height and width as int64.
const SizeBytes = 16

// PutSize writes height and width of an image as a record of the field of sizes.
func PutSize(dst []byte, height, width int) {
	binary.NativeEndian.PutUint64(dst, uint64(height))
	binary.NativeEndian.PutUint64(dst[8:], uint64(width))
}

// sizeAt returns the height and width that PutSize wrote for place i.
func sizeAt(sizes []byte, i int) (height, width int) {
	sizes = sizes[i*SizeBytes:]
	return int(binary.NativeEndian.Uint64(sizes)), int(binary.NativeEndian.Uint64(sizes[8:]))
}

// shape returns the shape of the padded array for a batch whose largest image has the given height
// and width.
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

// planes returns how many planes an image has, and how many elements a pixel has in each plane. The
// axes before the height are planes (CHW, masks of instances), and the axes after the width are
// parts of a pixel (HWC).
func (p *Padding) planes() (count, elements int) {
	at := slices.Index(p.Shape, Height)
	return p.Shape[:at].Elems(), p.Shape[at+2:].Elems()
}

// largest returns the height and width to which a batch of n records is padded: the largest of
// each, rounded up to Multiple. Height and width may come from two different images.
func (p *Padding) largest(sizes []byte, n int) (height, width int) {
	for i := range n {
		h, w := sizeAt(sizes, i)
		height, width = max(height, h), max(width, w)
	}
	up := func(v int) int { return (v + p.Multiple - 1) / p.Multiple * p.Multiple }
	return up(height), up(width)
}

// padPlane copies one plane into a larger one, and fills the rest with value. from and to are
// numbers of rows and bytes per row.
func padPlane(dst, src []byte, from, to [2]int, value []byte) {
	for y := range from[0] {
		row := dst[y*to[1] : (y+1)*to[1]]
		padding.Fill(row[copy(row, src[y*from[1]:(y+1)*from[1]]):], value)
	}
	padding.Fill(dst[from[0]*to[1]:to[0]*to[1]], value)
}

// spare recycles the memory of padded records. Images of several sizes differ from batch to batch,
// so that memory tied to a place would grow to the largest image everywhere. All Fillers of a Plan
// share the list.
type spare struct {
	mu   sync.Mutex
	list [][]byte // under mu
}

// mostSpare limits the records whose memory is kept. Memory beyond the limit is left to the garbage collector.
const mostSpare = 256

// put keeps the memory b for a later take, unless the list is full.
func (s *spare) put(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(b) > 0 && len(s.list) < mostSpare {
		s.list = append(s.list, b[:0])
	}
}

// take returns kept memory, the most recent first, or nil.
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
