// Package digest names parameters in a few characters, for the IDs that a State compares.
package digest

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"slices"
)

// Of returns 16 hexadecimal digits: a digest of the values as fmt prints them, but of the bytes of numbers in a list, which may be long.
func Of(values ...any) string {
	h := fnv.New64a()
	for _, v := range values {
		switch v := v.(type) {
		case []int:
			add(h, v, func(n int) uint64 { return uint64(n) })
		case []float64:
			add(h, v, math.Float64bits)
		default:
			fmt.Fprintf(h, "%v;", v)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// add adds the length and the numbers of a list.
func add[T int | float64](h hash.Hash64, list []T, bits func(T) uint64) {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8<<10), uint64(len(list)))
	for part := range slices.Chunk(list, cap(b)/8) {
		h.Write(b)
		b = b[:0]
		for _, n := range part {
			b = binary.LittleEndian.AppendUint64(b, bits(n))
		}
	}
	h.Write(b)
}
