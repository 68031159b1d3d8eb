package hdf5

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/tensor"
)

// widened reads the numbers of other records as a type that has all their values, as libhdf5 converts the sources of a
// virtual dataset.
type widened struct {
	narrow   Records
	from, to *meta.Datatype
}

// Len implements Records.
func (w *widened) Len() int64 { return w.narrow.Len() }

// widen returns r, whose elements are of type from, as records of type to.
func widen(r Records, from, to *meta.Datatype) (Records, error) {
	a, b := from.DType(), to.DType()
	switch {
	case from.String() == to.String(), a == b && a != tensor.Invalid:
		return r, nil
	case holds(b, a):
		return &widened{r, from, to}, nil
	}
	return nil, fmt.Errorf("it is %v, not %v, which cannot hold all its values: %w; write the virtual dataset "+
		"as one that is converted: h5repack -l CONTI OLD.h5 NEW.h5", from, to, meta.ErrUnsupported)
}

// integerBits are the bits of the magnitude of numbers, and whether they have a sign.
var integerBits = map[tensor.DType]struct {
	bits   int
	signed bool
}{
	tensor.Uint8: {8, false}, tensor.Uint16: {16, false}, tensor.Uint32: {32, false}, tensor.Uint64: {64, false},
	tensor.Int8: {7, true}, tensor.Int16: {15, true}, tensor.Int32: {31, true}, tensor.Int64: {63, true},
}

// holds reports whether a type has all values of another.
func holds(to, from tensor.DType) bool {
	f, isInteger := integerBits[from]
	if !isInteger {
		return from == tensor.Float32 && to == tensor.Float64
	}
	switch to {
	case tensor.Float32:
		return f.bits <= 24
	case tensor.Float64:
		return f.bits <= 53
	}
	t, ok := integerBits[to]
	return ok && f.bits <= t.bits && (t.signed || !f.signed)
}

// RecordBytes implements Records.
func (w *widened) RecordBytes() int {
	return w.narrow.RecordBytes() / int(w.from.Size) * int(w.to.Size)
}

// Records implements Records.
func (w *widened) Records(ctx context.Context, dst []byte, a, b int64) error {
	src := make([]byte, (b-a)*int64(w.narrow.RecordBytes()))
	if err := w.narrow.Records(ctx, src, a, b); err != nil {
		return err
	}
	for n, m := int(w.from.Size), int(w.to.Size); len(src) > 0; src, dst = src[n:], dst[m:] {
		w.put(dst[:m], src[:n])
	}
	return nil
}

// put converts a number.
func (w *widened) put(dst, src []byte) {
	x := uint64(0)
	switch to := w.to.DType(); {
	case w.from.DType() == tensor.Float32:
		x = math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(src))))
	case to == tensor.Float32:
		x = uint64(math.Float32bits(float32(integer(w.from, src))))
	case to == tensor.Float64:
		x = math.Float64bits(float64(integer(w.from, src)))
	default:
		x = uint64(integer(w.from, src))
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], x)
	copy(dst, word[:len(dst)])
}
