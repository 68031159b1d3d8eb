package write

import (
	"testing"

	"github.com/penstock/penstock/internal/layout"
)

func TestCRCShift(t *testing.T) {
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 2, 3, 64, 1000, 4999} {
		s := newCRCShift(int64(n))
		a, b := data[:len(data)-n], data[len(data)-n:]
		if got, want := s.join(layout.CRC32C(a), layout.CRC32C(b)), layout.CRC32C(data); got != want {
			t.Errorf("%d bytes appended: %08x, want %08x", n, got, want)
		}
	}
}
