package write

import (
	"testing"

	"github.com/penstock/penstock/store"
)

func TestCRCShift(t *testing.T) {
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 2, 3, 64, 1000, 4999} {
		s := newCRCShift(int64(n))
		a, b := data[:len(data)-n], data[len(data)-n:]
		if got, want := s.join(store.CRC32C(a), store.CRC32C(b)), store.CRC32C(data); got != want {
			t.Errorf("%d bytes appended: %08x, want %08x", n, got, want)
		}
	}
}
