package write

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
)

// state appends the state of identity and statistics to b, in the form that docs/format.md specifies. An append
// continues from this state without reading a record. A SHA-256 can be interrupted and continued, and Go's encoding of
// its state is part of the format.
func (k *splitMetadata) state(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(k.count))
	for i := range k.ids {
		id, err := k.ids[i].(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			panic("store: a SHA-256 has no state: " + err.Error())
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(id)))
		b = append(b, id...)
		for c := range k.stats[i] {
			b = appendMoments(b, &k.stats[i][c])
		}
		b = appendMoments(b, &k.lengths[i])
		b = binary.LittleEndian.AppendUint32(b, uint32(len(k.labels[i])))
		for _, n := range k.labels[i] {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	return b
}

func appendMoments(b []byte, a *moments.Moments) []byte {
	for _, x := range []uint64{
		uint64(a.N), uint64(a.NonFinite), math.Float64bits(a.Min), math.Float64bits(a.Max),
		uint64(a.Sum), uint64(a.SumSquares), math.Float64bits(a.Mean), math.Float64bits(a.M2),
	} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

var errBadState = fmt.Errorf("the state of its metadata does not fit this schema: %w", store.ErrCorrupt)

// restore is the inverse of state. The state comes from a manifest, which may be damaged, so lengths are compared with
// the lengths that the schema needs, and counts with their limits.
func (k *splitMetadata) restore(r *stateReader) error {
	k.count = int64(r.uint64())
	for i := range k.ids {
		id := r.take(int(r.uint32()))
		if r.bad || k.ids[i].(encoding.BinaryUnmarshaler).UnmarshalBinary(id) != nil {
			return errBadState
		}
		for c := range k.stats[i] {
			r.moments(&k.stats[i][c])
		}
		r.moments(&k.lengths[i])
		n := int(r.uint32())
		if n > len(k.labels[i]) {
			return errBadState
		}
		for c := range n {
			k.labels[i][c] = int64(r.uint64())
		}
	}
	if k.count < 0 || k.count > layout.MaxRecords {
		return errBadState
	}
	return nil
}

func (r *stateReader) moments(a *moments.Moments) {
	a.N, a.NonFinite = int64(r.uint64()), int64(r.uint64())
	a.Min, a.Max = math.Float64frombits(r.uint64()), math.Float64frombits(r.uint64())
	a.Sum, a.SumSquares = int64(r.uint64()), int64(r.uint64())
	a.Mean, a.M2 = math.Float64frombits(r.uint64()), math.Float64frombits(r.uint64())
}

// stateReader takes numbers off a state; past its end they are 0 and bad is set.
type stateReader struct {
	b   []byte
	bad bool
}

// take returns the next n bytes. Past the end it returns nil from then on and sets bad, so callers check once at the
// end and not after each number.
func (r *stateReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *stateReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *stateReader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}
