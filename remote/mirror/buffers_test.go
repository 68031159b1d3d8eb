package mirror

import "testing"

func TestBuffers(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4095, 4096, 4097, 1<<20 + 1, largeBytes} {
		for range 2 {
			b := borrow(n)
			if got := int64(len(*b)); got != n || int64(cap(*b)) >= 2*n && n > 1 {
				t.Errorf("%d bytes were asked for: %d came, of %d", n, got, cap(*b))
			}
			clear(*b)
			giveBack(b)
		}
		half := borrow(n/2 + 1)
		if int64(len(*half)) != n/2+1 {
			t.Errorf("%d bytes came of %d", len(*half), n/2+1)
		}
	}
}
