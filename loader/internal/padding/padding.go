// Package padding fills memory with one value of any dtype: Element encodes the value, and Fill repeats its bytes. A
// value that the dtype cannot hold exactly is an error, because a rounded fill value would look like data.
package padding

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// Element returns the bytes of v as an element of type dt. A value that dt cannot hold exactly is
// an error.
func Element(dt tensor.DType, v float64) ([]byte, error) {
	b, err := dt.AppendExact(nil, tensor.Float(v))
	if err != nil {
		return nil, fmt.Errorf("Pad with %w", err)
	}
	return b, nil
}

// Fill repeats value over dst. It doubles the filled part with every copy, so that long rows take
// few calls.
func Fill(dst, value []byte) {
	for n := copy(dst, value); n > 0 && n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
