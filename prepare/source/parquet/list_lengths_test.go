package parquet

import (
	"bytes"
	"slices"
	"testing"
)

func TestListLengths(t *testing.T) {
	for _, c := range []struct {
		rank       int
		repetition []byte
		definition []byte
		want       []int
	}{
		{1, []byte{0, 1, 0, 1}, []byte{3, 3, 3, 3}, []int{2}},
		{1, []byte{0, 1, 0}, []byte{3, 3, 3}, nil},
		{1, []byte{0, 0, 1}, []byte{3, 3, 3}, nil},
		{1, []byte{0, 1, 0, 1}, []byte{3, 3, 3, 2}, nil}, // a null
		{1, nil, nil, nil},
		{2, []byte{0, 2, 2, 1, 2, 2, 0, 2, 2, 1, 2, 2}, bytes.Repeat([]byte{3}, 12), []int{2, 3}},
		{2, []byte{0, 2, 1, 2, 0, 2}, bytes.Repeat([]byte{3}, 6), nil},
		{2, []byte{0, 2, 1, 0, 2, 1, 2}, bytes.Repeat([]byte{3}, 7), nil},
	} {
		whole, halves := newListLengths(c.rank, 3), newListLengths(c.rank, 3)
		whole.add(c.repetition, c.definition, int64(len(c.repetition)))
		for i := range c.repetition {
			halves.add(c.repetition[i:i+1], c.definition[i:i+1], 1)
		}
		if got := whole.shape(); !slices.Equal(got, c.want) {
			t.Errorf("rank %d, levels %v: %v, want %v", c.rank, c.repetition, got, c.want)
		}
		if got := halves.shape(); !slices.Equal(got, c.want) {
			t.Errorf("rank %d, levels %v, a page each: %v, want %v", c.rank, c.repetition, got, c.want)
		}
	}
}
