package cuda

import (
	"context"
	"encoding/binary"

	"github.com/penstock/penstock/tensor"
)

// words is a Source of one field of variable length.
type words struct {
	*memory
	starts []int64
	tokens []byte
}

func newWords(n int) *words { return newSteepWords(n, 0) }

// newSteepWords returns words each of which has that many more tokens than the one before.
func newSteepWords(n, slope int) *words {
	w := &words{memory: newSource(n, tensor.Shape{1}), starts: make([]int64, n+1)}
	for r := range n {
		for i := range w.length(r) + slope*r {
			w.tokens = binary.LittleEndian.AppendUint16(w.tokens, w.token(r, i))
		}
		w.starts[r+1] = int64(len(w.tokens) / 2)
	}
	return w
}

func (*words) length(r int) int                { return r * 7 % 23 } // of which record 0 has none
func (*words) token(r, i int) uint16           { return uint16(r*251 + i*17) }
func (*words) Prefetch(string, int, int) error { return nil }

func (w *words) Specs() []tensor.Spec {
	return []tensor.Spec{{Name: "tokens", DType: tensor.Uint16, Ragged: true}}
}

func (w *words) SliceRagged(_ string, a, b int, offsets []int64) (tensor.View, error) {
	for i := range offsets {
		offsets[i] = w.starts[a+i] - w.starts[a]
	}
	n := int(w.starts[b] - w.starts[a])
	return tensor.Of(tensor.Spec{Name: "tokens", DType: tensor.Uint16}, n, w.tokens[2*w.starts[a]:2*w.starts[b]]), nil
}

func (w *words) Lengths(_ context.Context, _ string, indices []int, offsets []int64) error {
	offsets[0] = 0
	for i, x := range indices {
		offsets[i+1] = offsets[i] + w.starts[x+1] - w.starts[x]
	}
	return nil
}

func (w *words) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	dst = dst[:0]
	for _, x := range indices {
		dst = append(dst, w.tokens[2*w.starts[x]:2*w.starts[x+1]]...)
	}
	return dst, w.Lengths(ctx, field, indices, offsets)
}
