package invariants

import (
	"bytes"
	"testing"
)

func TestPoisonFillsEverything(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 255, 4096, 4097} {
		b := make([]byte, n+1) // one byte more, that must stay
		Poison(b[:n])
		if bytes.Count(b[:n], []byte{PoisonByte}) != n {
			t.Errorf("%d bytes: not filled", n)
		}
		if b[n] != 0 {
			t.Errorf("%d bytes: wrote past the end", n)
		}
	}
}
