package kernel

// Copy is copy(dst, src) for slices of one length that do not overlap, with src in no cache:
// 4 KiB or more are copied by the processor's copy instruction where that is faster, as the
// instruction does not read the bytes that it overwrites.
func Copy(dst, src []byte) {
	if len(dst) != len(src) {
		panic("kernel: Copy: dst and src have different lengths")
	}
	if len(src) < moveBytes || !move(dst, src) {
		copy(dst, src)
	}
}

// moveBytes is the least that Copy leaves to the instruction.
const moveBytes = 4 << 10
