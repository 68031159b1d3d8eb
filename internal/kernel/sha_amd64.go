//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// useLanes chooses the kernel that computes 16 hashes at a time. Tests clear it.
var useLanes = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW

// shaFast continues 16 hashes by blocks > 0 of 64 bytes each, at offsets of p, if there is a kernel.
func shaFast(state *[8][shaLanes]uint32, p []byte, offsets *[shaLanes]uint32, blocks int) {
	sha256x16(state, &p[0], offsets, blocks)
}

//go:noescape
func sha256x16(state *[8][shaLanes]uint32, p *byte, offsets *[shaLanes]uint32, blocks int)
