package kernel

import (
	"testing"
	"unsafe"
)

// TestMarkBytes compares with each byte, at both ends of guarded memory.
func TestMarkBytes(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range append([]int{63, 64, 65, 127, 128, 129}, lengths...) {
			for k, src := range targets(t, n) {
				for i := range src {
					src[i] = ",,\n\x00\x80\xff-+"[(i*i+i/7+k)%8]
				}
				for _, c := range []byte{',', 0, 0x80, 0xff} {
					got := make([]uint64, (n+63)/64+1)
					for i := range got {
						got[i] = 0x5555
					}
					MarkBytes(got, unsafe.String(unsafe.SliceData(src), n), c)
					for i := range 64 * (len(got) - 1) {
						if marked := got[i/64]>>(i%64)&1 == 1; marked != (i < n && src[i] == c) {
							t.Fatalf("%d bytes, %q: byte %d marked: %v", n, c, i, marked)
						}
					}
					if got[len(got)-1] != 0x5555 {
						t.Fatalf("%d bytes: a word too many was written", n)
					}
				}
			}
		}
	})
}
