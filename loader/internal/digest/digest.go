// Package digest names parameters in a few characters, for the IDs that a State compares.
package digest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
)

// Of returns 16 hexadecimal digits: a digest of the values as fmt prints them.
func Of(values ...any) string {
	h := fnv.New64a()
	for _, v := range values {
		fmt.Fprintf(h, "%v;", v)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Numbers returns the digest of a list, which may be long.
func Numbers(list []int) string {
	h, b := fnv.New64a(), make([]byte, 0, 8<<10)
	for part := range slices.Chunk(list, cap(b)/8) {
		b = b[:0]
		for _, n := range part {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
		h.Write(b)
	}
	return Of(len(list), h.Sum64())
}
