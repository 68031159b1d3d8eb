package feed

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// array says where numbers of 8 bytes are in the file that came with the hello. Millions of weights
// or record numbers would be slow as JSON and exceed maxMessage.
type array struct {
	At    int64 `json:"at"`
	Count int64 `json:"count"`
}

// arrays is the file that came with a hello, with little-endian numbers; file is nil if no file
// came.
type arrays struct{ file *os.File }

// read returns the numbers of an array. `of` converts the 64 bits of a number. The file is the
// client's, so the place is checked against its size, and the numbers are copied before they are
// used.
func read[T any](a arrays, where array, of func(uint64) T) ([]T, error) {
	if a.file == nil {
		return nil, fmt.Errorf("%d numbers, but no file with them came with the hello", where.Count)
	}
	info, err := a.file.Stat()
	if err != nil {
		return nil, err
	}
	if size := info.Size(); where.At < 0 || where.Count < 0 || where.At > size || where.Count > (size-where.At)/8 {
		return nil, fmt.Errorf("%d numbers at byte %d are not in the %d bytes that came with the hello", where.Count,
			where.At, size)
	}
	out := make([]T, where.Count)
	buffer := make([]byte, 8*min(where.Count, 1<<16))
	for i := int64(0); i < where.Count; {
		n := min(where.Count-i, int64(len(buffer)/8))
		if _, err := a.file.ReadAt(buffer[:8*n], where.At+8*i); err != nil {
			return nil, fmt.Errorf("reading the numbers that came with the hello: %w", err)
		}
		for k := range n {
			out[i+k] = of(binary.LittleEndian.Uint64(buffer[8*k:]))
		}
		i += n
	}
	return out, nil
}

// ints returns an array of int64.
func (a arrays) ints(where array) ([]int, error) {
	return read(a, where, func(bits uint64) int { return int(int64(bits)) })
}

// floats returns an array of float64.
func (a arrays) floats(where array) ([]float64, error) { return read(a, where, math.Float64frombits) }
