//go:build !purego

package vec

import "math"

// exactUnit returns the coefficients as the exact kernels have them, and for a column of
// their tables what stands in the first two rows: what share of a number they add to it, and
// which bytes of the mask for a byte are to make the integer that they begin with. If the
// unit is 255, that is the byte three times; it is about x/255 * 2^24, which the other
// coefficients are scaled to.
func (k coefficients) exactUnit(col int) (scaled coefficients, again, bytes float32) {
	first, none := uint32(col%4*4), uint32(0x80)
	if k.unit != 255 {
		return k, 0, math.Float32frombits(none<<24 | none<<16 | none<<8 | first)
	}
	k.mean, k.stdHi, k.stdLo = k.mean*(1<<24), k.stdHi/(1<<24), k.stdLo/(1<<24)
	return k, 1.0 / (1 << 24), math.Float32frombits(none<<24 | first<<16 | first<<8 | first)
}
