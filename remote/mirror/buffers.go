package mirror

import (
	"math/bits"
	"sync"
)

// buffers keep the memory of requests that have ended for others, by the power of two that it has
// bytes: to grow it would copy what nobody needs, and take pages that were never touched.
var buffers [bits.UintSize]sync.Pool

// borrow returns n bytes, more than none, that hold anything; giveBack takes them back.
func borrow(n int64) *[]byte {
	class := bits.Len64(uint64(n) - 1)
	if b, ok := buffers[class].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<class)
	return &b
}

func giveBack(b *[]byte) { buffers[bits.Len(uint(cap(*b)-1))].Put(b) }
