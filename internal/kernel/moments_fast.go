//go:build (amd64 || arm64) && !purego

package kernel

import (
	"encoding/binary"
	"slices"
)

// momentsFast counts the bytes of p but the last few, and returns how many it counted, their sums, and low and high
// or what is below and above.
func momentsFast(p []byte, low, high byte) (done int, sum, squares uint64, least, most byte) {
	if !useKernels {
		return 0, 0, 0, low, high
	}
	const longest = 1 << 18
	for len(p)-done >= 32 {
		n := min(len(p)-done, longest) &^ 31
		var out [4][32]byte
		moments32(&out, &p[done], n)
		for i := 0; i < 32; i += 8 {
			sum += binary.LittleEndian.Uint64(out[0][i:])
			squares += binary.LittleEndian.Uint64(out[1][i:])
		}
		low = min(low, slices.Min(out[2][:]))
		high = max(high, slices.Max(out[3][:]))
		done += n
	}
	return done, sum, squares, low, high
}
