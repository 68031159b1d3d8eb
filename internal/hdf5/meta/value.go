package meta

import (
	"encoding/binary"
	"math"

	"github.com/penstock/penstock/tensor"
)

// Value holds the elements of an attribute or a small dataset. Numbers are widened: signed integers to int64, unsigned
// ones to uint64, floats of any size to float64. Returned slices are shared and must not be changed.
type Value struct {
	Type *Datatype
	Dims []int64 // empty for a scalar; the axes of an array type come last
	Null bool    // has a type, but no elements
	Raw  []byte  // the elements as stored

	data any // []int64, []uint64, []float64, []bool, []string; nil if no element was decoded
}

// Any returns int64, uint64, float64, bool or string for a scalar, and a slice of
// the same type for an array, and nil for a null value and for classes that are not
// decoded.
func (v Value) Any() any {
	if len(v.Dims) > 0 || v.Null {
		return v.data
	}
	switch d := v.data.(type) {
	case []int64:
		return d[0]
	case []uint64:
		return d[0]
	case []float64:
		return d[0]
	case []bool:
		return d[0]
	case []string:
		return d[0]
	}
	return nil
}

// Strings returns the elements if they are strings.
func (v Value) Strings() ([]string, bool) { s, ok := v.data.([]string); return s, ok }

// Text returns the string if there is exactly one.
func (v Value) Text() (string, bool) {
	s, ok := v.Strings()
	if !ok || len(s) != 1 {
		return "", false
	}
	return s[0], true
}

// Ints returns the elements if they are integers or bools that fit int64.
func (v Value) Ints() ([]int64, bool) {
	switch d := v.data.(type) {
	case []int64:
		return d, true
	case []uint64:
		out := make([]int64, len(d))
		for i, x := range d {
			if x > math.MaxInt64 {
				return nil, false
			}
			out[i] = int64(x)
		}
		return out, true
	case []bool:
		out := make([]int64, len(d))
		for i, x := range d {
			if x {
				out[i] = 1
			}
		}
		return out, true
	}
	return nil, false
}

// Int returns the integer if there is exactly one.
func (v Value) Int() (int64, bool) {
	s, ok := v.Ints()
	if !ok || len(s) != 1 {
		return 0, false
	}
	return s[0], true
}

// Floats returns the elements if they are numbers.
func (v Value) Floats() ([]float64, bool) {
	switch d := v.data.(type) {
	case []float64:
		return d, true
	case []int64:
		return widen(d), true
	case []uint64:
		return widen(d), true
	}
	return nil, false
}

func widen[T int64 | uint64](d []T) []float64 {
	out := make([]float64, len(d))
	for i, x := range d {
		out[i] = float64(x)
	}
	return out
}

// valueSize returns the bytes that the elements take in the file.
func valueSize(t *Datatype, sp Dataspace) (uint64, bool) {
	n, ok := sp.Elems()
	if !ok {
		return 0, false
	}
	return product(uint64(n), uint64(t.Size))
}

// decode interprets raw, which must have exactly the bytes of the elements. A class that is only described gives an
// ErrUnsupported error and Raw.
func decode(s *source, hs globalHeaps, t *Datatype, sp Dataspace, raw []byte) (Value, error) {
	v := Value{Type: t, Dims: sp.Dims, Null: sp.Null, Raw: raw}
	elem := t
	for elem.Class == Array {
		v.Dims = append(v.Dims[:len(v.Dims):len(v.Dims)], elem.Dims...)
		elem = elem.Base
	}
	if v.Null {
		return v, nil
	}
	if !s.Spend(int64(len(raw))) {
		return v, refuse("value is larger than the limit")
	}
	var err error
	switch {
	case elem.Class == String:
		v.data = fixedStrings(elem, raw)
	case elem.Class == Vlen && elem.VlenString:
		v.data, err = vlenStrings(s, hs, elem, raw)
	case elem.DType() != tensor.Invalid && !elem.Format.VAXOrder:
		v.data = numbers(elem, raw)
	default:
		err = refuse("value of type %v is not read", t)
	}
	return v, err
}

// fixedStrings cuts raw into strings of the type's size, and removes their padding: NULs, or spaces from Fortran.
func fixedStrings(t *Datatype, raw []byte) []string {
	size := int(t.Size)
	out := make([]string, 0, len(raw)/size)
	for ; len(raw) >= size; raw = raw[size:] {
		out = append(out, t.Unpad(raw[:size]))
	}
	return out
}

// vlenStrings follows references of length (4 bytes), heap address, object index (4).
func vlenStrings(s *source, hs globalHeaps, t *Datatype, raw []byte) ([]string, error) {
	size := 8 + s.OffSize
	if int(t.Size) != size {
		return nil, refuseFor(ErrCorrupt, "string references of the wrong size")
	}
	out := make([]string, 0, len(raw)/size)
	for ; len(raw) >= size; raw = raw[size:] {
		str, err := vlenString(s, hs, t, raw[:size])
		if err != nil {
			return nil, err
		}
		out = append(out, str)
	}
	return out, nil
}

// vlenString returns a string of variable length. The element is a reference: a length, and the address and index of an
// object in a global heap (HDF5 file format 3.0, III.E). Writers store an empty string as length 0 or as address 0, and
// both are read. A small file may refer to one large object a million times, so each string is charged to the budget of
// the source, and not only each object.
func vlenString(s *source, hs globalHeaps, t *Datatype, ref []byte) (string, error) {
	c := &cursor{Src: s, B: ref}
	n, addr, index := uint64(c.U32()), c.Addr(), c.U32()
	if n == 0 || addr == 0 || addr == undef {
		return "", nil
	}
	p, err := hs.Object(s, addr, index)
	if err != nil {
		return "", err
	}
	if n > uint64(len(p)) {
		return "", s.ErrorAt(ErrCorrupt, addr, "global heap", "object %d has %d bytes, string has %d", index, len(p),
			n)
	}
	if !s.Spend(int64(n)) {
		return "", s.ErrorAt(ErrUnsupported, addr, "global heap", "strings are larger than the limit")
	}
	return t.Unpad(p[:n]), nil
}

// numbers decodes elements of a type that has a tensor.DType.
func numbers(t *Datatype, raw []byte) any {
	if t.Class == Enum && !t.IsBool() {
		t = t.Base
	}
	words := make([]uint64, 0, len(raw)/int(t.Size))
	for size := int(t.Size); len(raw) >= size; raw = raw[size:] {
		words = append(words, word(raw[:size], t.Swapped()))
	}
	switch d := t.DType(); {
	case d == tensor.Bool:
		return convert(words, func(w uint64) bool { return w != 0 })
	case d.IsFloat():
		return convert(words, func(w uint64) float64 { return d.Number(w).Float64() })
	}
	left, right := t.Shifts()
	if left == 0 && right == 0 {
		left = int(64 - 8*t.Size)
		right = left
	}
	if t.Signed {
		return convert(words, func(w uint64) int64 { return int64(w<<left) >> right })
	}
	return convert(words, func(w uint64) uint64 { return w << left >> right })
}

func convert[T any](words []uint64, f func(uint64) T) []T {
	out := make([]T, len(words))
	for i, w := range words {
		out[i] = f(w)
	}
	return out
}

// word returns the bits of an element of at most 8 bytes. swapped says that its bytes are in the other order. Shorter
// elements are extended by zeros.
func word(p []byte, swapped bool) uint64 {
	if !swapped {
		return littleEndian(p)
	}
	var b [8]byte
	copy(b[8-len(p):], p)
	return binary.BigEndian.Uint64(b[:])
}
