//go:build !purego

package vec

// exactUnit returns the coefficients as the exact kernels have them, and for a column of
// their tables what stands in the first two rows: the reciprocal of the unit.
func (k coefficients) exactUnit(int) (scaled coefficients, hi, lo float32) {
	hi, lo = reciprocal(k.unit)
	return k, hi, lo
}
