//go:build !purego

package decode

//go:generate go run -C _asm . -pkg decode -out ../kernels_amd64.s -stubs ../kernels_amd64.go

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// useAVX2 chooses the kernels in assembly. Tests clear it to try the loops.
var useAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasBMI2

// The Fast functions do as many elements as they can and return how many that are: all or
// none. They trust their callers for the lengths of all slices but the first.

func idctPairFast(dst []byte, stride int, coefs *[128]int16, quant *[64]uint16) bool {
	if !useAVX2 {
		return false
	}
	_ = dst[7*stride+15]
	idctPairAVX2(&dst[0], stride, coefs, quant)
	return true
}

func sumRowsFast(dst []uint16, near, far []byte) int {
	if !useAVX2 || len(dst) < 16 {
		return 0
	}
	sumRowsAVX2(&dst[0], &near[0], &far[0], len(dst))
	return len(dst)
}

func doubleColumnsFast(dst []byte, s []uint16, even, odd uint16) int {
	n := len(dst) / 2
	if !useAVX2 || n < 16 {
		return 0
	}
	doubleColumnsAVX2(&dst[0], &s[0], n, even, odd)
	return n
}

func yccToRGBXFast(dst, y, cb, cr []byte) int {
	if !useAVX2 || len(y) < 16 {
		return 0
	}
	yccToRGBXAVX2(&dst[0], &y[0], &cb[0], &cr[0], len(y))
	return len(y)
}

// What huffmanBlock returns as its status.
const (
	blockFlat    = iota // no coefficient but the first
	blockFull           // others too
	blockHungry         // bits must be filled in otherwise
	blockUnknown        // a code that is in no table, or is none
	blockOdd            // the entry led beyond the block
)

// sequentialFast is bitReader.sequential; done is false if nothing was done. The kernel gets
// pos, acc and n as an array: three words of bitReader that stand together.
func (r *bitReader) sequentialFast(b *[64]int16, dc, ac *huffTable, pred *int32) (any, ok, done bool) {
	if !useAVX2 || len(r.data) < 8 {
		return false, false, false
	}
	state := (*[3]uint64)(unsafe.Pointer(&r.pos))
	for from := -1; ; {
		status, k, last, entry, before := huffmanBlock(state, &r.data[0], len(r.data)-8, &b[0], &dc.look, &ac.look, pred, &zigzag[0], from)
		switch from = k; {
		case status == blockFlat || status == blockFull:
			return status == blockFull, true, true
		case status == blockHungry:
			r.fill()
		case status == blockOdd:
			any, ok = r.ended(fastEntry(entry), before, ac, uint8(k), uint8(last))
			return any, ok, true
		case k < 0:
			diff, ok := r.difference(dc)
			if !ok {
				return false, false, true
			}
			*pred += diff
			from = 0
		default:
			at, ok := r.long(b, ac, uint8(k))
			if !ok || at >= 63 {
				return true, ok && (at == 63 || at == longEnd), true
			}
			from = int(at)
		}
	}
}

// The kernel relies on where these are.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(bitReader{}.acc)-unsafe.Offsetof(bitReader{}.pos)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(bitReader{}.n)-unsafe.Offsetof(bitReader{}.acc)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.look)]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.fast)-2<<lookBits]
)
