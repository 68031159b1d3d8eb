package loadbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// sink keeps results alive that nobody asks for.
var sink atomic.Uint64

// touch reads every cache line of b.
func touch(b []byte) (sum uint64) {
	const line = 64
	for ; len(b) >= line; b = b[line:] {
		sum += binary.LittleEndian.Uint64(b)
	}
	for _, x := range b {
		sum += uint64(x)
	}
	return sum
}

// numbers is a Source of records that hold nothing but their own number: what the synthetic
// dataset is made from.
type numbers int

const numbersField = "sample"

var numbersSpec = tensor.Spec{Name: numbersField, DType: tensor.Int64, Shape: tensor.Shape{}}

// Len returns the number of records.
func (n numbers) Len() int { return int(n) }

// Specs returns the one field.
func (n numbers) Specs() []tensor.Spec { return []tensor.Spec{numbersSpec} }

// Run returns records [a, b).
func (n numbers) Slice(field string, a, b int) (tensor.View, error) {
	if field != numbersField || a < 0 || b < a || b > int(n) {
		return tensor.View{}, fmt.Errorf("synthetic: field %q has no records [%d, %d)", field, a, b)
	}
	dst := make([]byte, (b-a)*8)
	for i := a; i < b; i++ {
		binary.LittleEndian.PutUint64(dst[(i-a)*8:], uint64(i))
	}
	return tensor.Of(numbersSpec, b-a, dst), nil
}

// Contiguous is false: Run makes its memory.
func (n numbers) Contiguous(string, int, int) bool { return false }

// Gather writes the numbers of records.
func (n numbers) Gather(_ context.Context, _ string, indices []int, dst []byte) error {
	for i, r := range indices {
		binary.LittleEndian.PutUint64(dst[i*8:], uint64(r))
	}
	return nil
}

// Prefetch has nothing to read.
func (n numbers) Prefetch(string, int, int) error { return nil }

// Retain has nothing to keep.
func (n numbers) Retain() error { return nil }

// Release has nothing to end.
func (n numbers) Release() {}

var _ loader.ChunkedSource = numbers(0)
