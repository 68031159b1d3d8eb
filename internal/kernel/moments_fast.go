//go:build (amd64 || arm64) && !purego

package kernel

import (
	"encoding/binary"
	"slices"
)

// addFast counts the bytes of p but the last few, and returns how many it counted.
func (m *Moments) addFast(p []byte) int {
	if !useKernels {
		return 0
	}
	const most = 1 << 18
	done := 0
	for len(p)-done >= 32 {
		n := min(len(p)-done, most) &^ 31
		var out [4][32]byte
		moments32(&out, &p[done], n)
		for i := 0; i < 32; i += 8 {
			m.Sum += binary.LittleEndian.Uint64(out[0][i:])
			m.SumSq += binary.LittleEndian.Uint64(out[1][i:])
		}
		m.Min = min(m.Min, slices.Min(out[2][:]))
		m.Max = max(m.Max, slices.Max(out[3][:]))
		done += n
	}
	return done
}
