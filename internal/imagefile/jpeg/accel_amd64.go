//go:build !purego

package jpeg

import (
	"unsafe"
)

// unitsDone and the constants after it are what huffmanUnits returns as its status. The generator
// of the kernel (_asm/huffman.go) has the same constants.
const (
	unitsDone   = iota // all units are decoded
	unitsHungry        // a marker or the end of the file is near: bitReader.fill must refill
	unitsBad           // the bits are no code, or a run leads out of the block
	unitsOdd           // an entry of two coefficients led out of the block: bitReader.ended decides what is right
)

// unitsFast is bitReader.units with the kernel. done is false if there is no kernel to use, and
// then nothing has been read. The kernel gets pos, acc and n as one array of three words: they lie
// next to each other in bitReader, which the declarations below check when the package is compiled.
//
// The kernel stops at rare cases; the loop here handles such a case in Go and restarts the kernel
// where it stopped: in the middle of block at, after coefficient k.
func (r *bitReader) unitsFast(blocks []unitBlock, units int) (ok, done bool) {
	if !useKernels || len(r.data) < 8 {
		return false, false
	}
	for i := range blocks {
		blocks[i].holds(units)
	}
	state := (*[3]uint64)(unsafe.Pointer(&r.pos))
	base, size, from := (*byte)(unsafe.Pointer(&blocks[0])), len(blocks)*blockSize, 0
	for k0 := -1; ; {
		status, left, at, k, last, entry, before := huffmanUnits(state, &r.data[0], len(r.data)-8, base, size, from, units,
			&zigzag[0], k0)
		from, units, k0 = at, left, k
		switch status {
		case unitsDone:
			return true, true
		case unitsBad:
			return false, true
		case unitsHungry:
			r.fill()
			continue
		}
		b := &blocks[at/blockSize]
		any, ok := r.ended(fastEntry(entry), before, b.ac, uint8(k), uint8(last))
		if !ok {
			return false, true
		}
		b.done(any)
		if from, k0 = at+blockSize, -1; from == size {
			if from, units = 0, units-1; units == 0 {
				return true, true
			}
		}
	}
}

// blockSize and the constants after it are sizes and offsets in bytes of the fields that the kernel
// reads in unitBlock and huffTable.
const (
	blockSize = int(unsafe.Sizeof(unitBlock{}))
	coefsAt   = 0
	anyAt     = 24
	dcAt      = 48
	acAt      = 56
	predAt    = 64
	placeAt   = 72
	stepAt    = 80
	fastAt    = 2 << lookBits
	countsAt  = fastAt + 4<<fastBits
	symbolsAt = countsAt + 16
	firstAt   = symbolsAt + 256
	indexAt   = firstAt + 4*17
)

// An array index that is not 0 does not compile: each line here proves that a field lies where the
// kernel looks for it.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(bitReader{}.acc)-unsafe.Offsetof(bitReader{}.pos)-8]
	_ = [1]struct{}{}[unsafe.Offsetof(bitReader{}.n)-unsafe.Offsetof(bitReader{}.acc)-8]
	_ = [1]struct{}{}[blockSize-88]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.coefs)-coefsAt]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.any)-anyAt]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.dc)-dcAt]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.ac)-acAt]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.pred)-predAt]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.place)-placeAt]
	_ = [1]struct{}{}[unsafe.Offsetof(unitBlock{}.step)-stepAt]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.look)]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.fast)-fastAt]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.counts)-countsAt]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.symbols)-symbolsAt]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.first)-firstAt]
	_ = [1]struct{}{}[unsafe.Offsetof(huffTable{}.index)-indexAt]
)

// holds panics unless coefs and any have room for the block in that many units. The kernel writes
// there without checks of its own.
func (b *unitBlock) holds(units int) {
	last := b.place + b.step*(units-1)
	_, _ = b.coefs[64*last+63], b.any[last]
}
