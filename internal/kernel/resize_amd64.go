//go:build !purego

package kernel

// packPair returns the high parts of a pair of weights in the first number, and the low
// parts in the second. A weight is high*2^11 + low, so that both fit the 16 bits of a
// multiply-add and nothing is rounded.
func packPair(a, b int32) (high, low int32) {
	const mask = 1<<11 - 1
	return b>>11<<16 | a>>11&0xffff, b&mask<<16 | a&mask
}

// eighths are the high and the low parts of eight weights, as resizeGray reads them.
type eighths = [2][8]int16

// packEighth writes weight i of eight.
func packEighth(to *eighths, i int, weight int32) {
	to[0][i], to[1][i] = int16(weight>>11), int16(weight&(1<<11-1))
}

// resizeMasks gather pixels 0 and 1, or 2 and 3, as 16-bit pairs for each channel.
var resizeMasks = [5]*[2][32]byte{3: newResizeMasks(3), 4: newResizeMasks(4)}

func newResizeMasks(step int) *[2][32]byte {
	m := new([2][32]byte)
	for i := range m {
		for j := range m[i] {
			m[i][j] = 0x80
			if lane := j % 16; lane%2 == 0 && lane < 12 {
				m[i][j] = byte(lane/4 + (2*i+lane/2%2)*step)
			}
		}
	}
	return m
}
