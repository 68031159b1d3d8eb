package order_test

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/sampler"
)

// The slices of all ranks are the global batch; those of a short one are padded, so that every rank has as many.
func TestRanksShareSteps(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		for records := range 40 {
			var all []int
			shares := order.Shares{Batch: 4, Ranks: ranks}
			steps := shares.Steps(records)
			for step := range steps {
				first, pads := -1, 0
				for rank := range ranks {
					shares.Rank = rank
					e := order.New(shares, 0, sampler.Sequential{}.Epoch(records, 0, 0))
					if e.Steps != steps || e.Records != records {
						t.Fatalf("%d steps of %d positions", e.Steps, e.Records)
					}
					pos, n, pad := e.Slice(step)
					if first < 0 {
						first = n
					}
					if n != first || pad > n {
						t.Fatalf("rank %d of %d has %d records, %d of them padding; rank 0 has %d", rank, ranks, n, pad, first)
					}
					got := make([]int, n)
					e.Choose(pos, pad, got)
					all, pads = append(all, got[:n-pad]...), pads+pad
					if i := order.Outside(got, records); i >= 0 {
						t.Fatalf("place %d is record %d of %d", i, got[i], records)
					}
				}
				if pads >= ranks && pads > 0 && first > 1 {
					t.Fatalf("%d records, %d ranks: %d places are padding", records, ranks, pads)
				}
			}
			want := make([]int, records)
			order.Consecutive(0, want)
			if !slices.Equal(all, want) {
				t.Fatalf("%d records, %d ranks: %v", records, ranks, all)
			}
		}
	}
}

// A last batch that is full has the positions from the start of the epoch on after its own, and one that is uneven repeats
// none: they are what Accelerate's BatchSamplerShard has with even_batches and without.
func TestLastBatch(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		for records := 1; records < 40; records++ {
			for _, last := range []order.Last{order.Full, order.Uneven} {
				shares := order.Shares{Batch: 4, Ranks: ranks, Last: last}
				for rank := range ranks {
					shares.Rank = rank
					e := order.New(shares, 0, sampler.Sequential{}.Epoch(records, 0, 0))
					var got, want []int
					for step := range e.Steps {
						pos, n, pad := e.Slice(step)
						if n < 1 || n > 4 || pad > n {
							t.Fatalf("step %d has %d records, %d of them padding", step, n, pad)
						}
						batch := make([]int, n)
						e.Choose(pos, pad, batch)
						got = append(got, batch...)
					}
					global := 4 * ranks
					for at := range (records + global - 1) / global * global {
						if at/4%ranks == rank && (last == order.Full || at < records) {
							want = append(want, at%records)
						}
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%d records, rank %d of %d, %v: %v, not %v", records, rank, ranks, last, got, want)
					}
				}
			}
		}
	}
}

// A span of steps equals the steps one after the other.
func TestSpan(t *testing.T) {
	for _, drop := range []bool{false, true} {
		shares := order.Shares{Batch: 3, Ranks: 1, DropLast: drop}
		e := order.New(shares, 7, sampler.Sequential{}.Epoch(10, 0, 0))
		if want := map[bool]int{false: 4, true: 3}[drop]; e.Steps != want {
			t.Fatalf("%d steps, not %d", e.Steps, want)
		}
		pos, n, pad := e.Span(1, e.Steps-1)
		if pos != 3 || n != min(10, 3*e.Steps)-3 || pad != 0 {
			t.Errorf("from %d on %d positions, %d of them padding", pos, n, pad)
		}
	}
}

// Runs are found whether or not the Sequence says so.
func TestRuns(t *testing.T) {
	shares := order.Shares{Batch: 4, Ranks: 1}
	room := make([]int, 4)
	e := order.New(shares, 0, sampler.Sequential{}.Epoch(10, 0, 0))
	if first, ok := e.RunAt(4, 4, 0); !ok || first != 4 {
		t.Errorf("RunAt: %d, %v", first, ok)
	}
	if _, ok := e.RunAt(8, 4, 2); ok {
		t.Error("positions beyond the end of the epoch are one run with those before")
	}
	list := order.New(shares, 0, sampler.Subset{Indices: []int{5, 6, 7, 8, 2, 1, 3, 4}}.Epoch(10, 0, 0))
	if first, ok := list.RunOf(room, 0, 4, 0); !ok || first != 5 {
		t.Errorf("RunOf: %d, %v", first, ok)
	}
	if _, ok := list.RunOf(room, 4, 4, 0); ok {
		t.Error("2, 1, 3, 4 is a run")
	}
	if n := order.RunLength([]int{4, 5, 6, 8, 9}); n != 3 {
		t.Errorf("the run has %d records", n)
	}
}
