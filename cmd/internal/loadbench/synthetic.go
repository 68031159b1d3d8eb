package loadbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// sink takes results that nothing else uses: without it, the compiler could remove the work that is
// measured.
var sink atomic.Uint64

// touch reads one word of every cache line of b, and returns their sum.
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

// numbers is a Source of that many records, which have nothing but their own number: the synthetic
// dataset before preparation.
type numbers int

// numbersField is the name of its only field.
const numbersField = "sample"

var numbersSpec = tensor.Spec{Name: numbersField, DType: tensor.Int64, Shape: tensor.Shape{}}

// Len returns the number of records.
func (n numbers) Len() int { return int(n) }

// Specs returns the one field.
func (n numbers) Specs() []tensor.Spec { return []tensor.Spec{numbersSpec} }

// Slice returns records [a, b) in new memory.
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

// Contiguous returns false: Slice allocates.
func (n numbers) Contiguous(string, int, int) bool { return false }

// Gather writes the numbers of the records.
func (n numbers) Gather(_ context.Context, _ string, indices []int, dst []byte) error {
	for i, r := range indices {
		binary.LittleEndian.PutUint64(dst[i*8:], uint64(r))
	}
	return nil
}

// Prefetch does nothing: there is nothing to read.
func (n numbers) Prefetch(string, int, int) error { return nil }

// Retain does nothing: records are no views of anything.
func (n numbers) Retain() error { return nil }

// Release undoes Retain.
func (n numbers) Release() {}

var _ loader.ChunkedSource = numbers(0)
