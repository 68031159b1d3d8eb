package store

import (
	"io"
	"strings"
	"testing"
)

// The check value is that of RFC 3720's polynomial for "123456789".
func TestCRCWriter(t *testing.T) {
	var w CRCWriter
	for range 2 {
		for _, part := range []string{"1", "", "2345", "6789"} {
			if n, err := io.Copy(&w, strings.NewReader(part)); int(n) != len(part) || err != nil {
				t.Errorf("%d of %q taken, error %v", n, part, err)
			}
		}
		if w.Sum != 0xe3069283 || w.Sum != CRC32C([]byte("123456789")) {
			t.Errorf("%08x", w.Sum)
		}
		w.Sum = 0
	}
}

func TestCRCShift(t *testing.T) {
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 2, 3, 64, 1000, 4999} {
		s := newCRCShift(int64(n))
		a, b := data[:len(data)-n], data[len(data)-n:]
		if got, want := s.join(CRC32C(a), CRC32C(b)), CRC32C(data); got != want {
			t.Errorf("%d bytes appended: %08x, want %08x", n, got, want)
		}
	}
}
