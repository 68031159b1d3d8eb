package chunk

import (
	"encoding/binary"

	"github.com/penstock/penstock/internal/codec/filter"
	"github.com/penstock/penstock/internal/hdf5/meta"
)

// numbers says how stored numbers of a dataset become numbers of this machine.
type numbers struct {
	swap        int // bytes of a big-endian number, otherwise 0
	size        int // bytes of an integer with insignificant bits, otherwise 0
	left, right int // shifts that leave the significant bits, see Datatype.Shifts
	signed      bool
}

// Native returns a function that converts stored numbers of a type to numbers of this machine, in place; nil if both
// are the same.
func Native(t *meta.Datatype) func(b []byte) {
	n := numbersOf(t)
	if n.stored() {
		return nil
	}
	return n.decode
}

// numbersOf returns how numbers of a type become numbers of this machine: by swapping bytes and, if the precision is
// less than the size, by shifts that move the significant bits into place and extend the sign.
func numbersOf(t *meta.Datatype) (n numbers) {
	n.swap = swapped(t)
	for t.Class == meta.Array || t.Class == meta.Enum {
		t = t.Base
	}
	if n.left, n.right = t.Shifts(); n.right > 0 {
		n.size, n.signed = int(t.Size), t.Signed
	}
	return n
}

// stored reports whether numbers are stored in the form of this machine, so that decode has nothing to do.
func (n *numbers) stored() bool { return n.swap == 0 && n.size == 0 }

// decode converts stored numbers to numbers of this machine, in place.
func (n *numbers) decode(b []byte) {
	filter.SwapBytes(b, n.swap)
	if n.size == 0 {
		return
	}
	for ; len(b) >= n.size; b = b[n.size:] {
		var word [8]byte
		copy(word[:], b[:n.size])
		x := binary.LittleEndian.Uint64(word[:]) << n.left
		if n.signed {
			x = uint64(int64(x) >> n.right)
		} else {
			x >>= n.right
		}
		binary.LittleEndian.PutUint64(word[:], x)
		copy(b[:n.size], word[:])
	}
}

// swapped returns the size of the numbers whose bytes have to be reversed, or 0.
func swapped(t *meta.Datatype) int {
	for t.Class == meta.Array || t.Class == meta.Enum || t.Class == meta.Complex {
		t = t.Base
	}
	if t.BigEndian && t.Size > 1 {
		return int(t.Size)
	}
	return 0
}
