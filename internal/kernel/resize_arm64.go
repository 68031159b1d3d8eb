//go:build !purego

package kernel

// packPair returns the pair of weights, as the kernels multiply 32 bits.
func packPair(a, b int32) (first, second int32) { return a, b }

// eighths are eight weights, as resizeGray reads them.
type eighths = [8]int32

// packEighth writes weight i of eight.
func packEighth(to *eighths, i int, weight int32) { to[i] = weight }

// resizeMasks expand four pixels to the channels of each as 32-bit numbers, and a zero.
var resizeMasks = [5]*[4][16]byte{3: newResizeMasks(3), 4: newResizeMasks(4)}

func newResizeMasks(step int) *[4][16]byte {
	m := new([4][16]byte)
	for i := range m {
		for j := range m[i] {
			m[i][j] = 0x80
			if j%4 == 0 && j < 12 {
				m[i][j] = byte(i*step + j/4)
			}
		}
	}
	return m
}
