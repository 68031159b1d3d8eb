package loader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

func packed(t testing.TB, src loader.Source, k combine.Pack) *combine.Packed {
	t.Helper()
	p, err := combine.NewPacked(context.Background(), src, k)
	require.NoError(t, err)
	return p
}

// checkRow fails the test unless a row is its pieces, and no piece is too long.
func checkRow(t testing.TB, pieces []combine.Piece, values, positions, segments []int32, pad int32) {
	t.Helper()
	at := 0
	for k, piece := range pieces {
		want := wordsOf(int(piece.Record))[piece.From : piece.From+piece.N]
		if got := values[at : at+len(want)]; !slices.Equal(got, want) {
			t.Fatalf("piece %+v is %v", piece, got)
		}
		for i := range want {
			if positions[at+i] != int32(i) || segments[at+i] != int32(k+1) {
				t.Fatalf("piece %+v: positions %v, segments %v", piece, positions, segments)
			}
		}
		at += len(want)
	}
	for ; at < len(values); at++ {
		if values[at] != pad || positions[at] != 0 || segments[at] != 0 {
			t.Fatalf("element %d after the pieces: %d, position %d, segment %d", at, values[at], positions[at], segments[at])
		}
	}
}

// Every element of every record is in one row, whatever the parameters, and batches contain the
// rows of the plan.
func TestPacked(t *testing.T) {
	const n = 400
	for _, k := range []combine.Pack{
		{Length: 6}, {Length: 7, MaxOpenRows: 1}, {Length: 50}, {Length: 16, Sampler: sampler.Shuffle{}, Seed: 3, Epoch: 1, Pad: map[string]float64{"t": -100}},
		{Length: 1, Overflow: combine.OverflowSplit}, {Length: 4, Overflow: combine.OverflowSplit, MaxOpenRows: 3}, {Length: 4, Overflow: combine.OverflowTruncate},
	} {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			p := packed(t, newWords(n), k)
			seen := make(map[int]int)
			ld := openWords(t, p, loader.Options{BatchSize: 5, Sampler: sampler.Shuffle{}, Workers: 2})
			for b, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				values, pos, seg := tensor.As[int32](b.Field("t")), tensor.As[int32](b.Field(combine.Positions)), tensor.As[int32](b.Field(combine.Segments))
				for i, row := range b.Indices() {
					from, to := i*k.Length, (i+1)*k.Length
					checkRow(t, p.Pieces(row), values[from:to], pos[from:to], seg[from:to], int32(k.Pad["t"]))
					for _, piece := range p.Pieces(row) {
						seen[int(piece.Record)] += int(piece.N)
					}
				}
			}
			used := 0
			for r := range n {
				want := len(wordsOf(r))
				if k.Overflow == combine.OverflowTruncate {
					want = min(want, k.Length)
				}
				if seen[r] != want {
					t.Fatalf("%d elements of record %d, not %d", seen[r], r, want)
				}
				used += want
			}
			if got := p.Used(); got != float64(used)/float64(p.Len()*k.Length) || got < 0.75 {
				t.Errorf("used %v of %d rows", got, p.Len())
			}
		})
	}
}

// The ends of pieces and of what rows are filled up with cover a batch without a gap.
func TestCuSeqlens(t *testing.T) {
	p := packed(t, newWords(300), combine.Pack{Length: 10, MaxOpenRows: 2})
	rows := []int{4, 0, 0, 9}
	ends := p.CuSeqlens(nil, rows)
	if ends[0] != 0 || ends[len(ends)-1] != int32(len(rows)*10) {
		t.Fatalf("%v", ends)
	}
	at := 1
	for i, row := range rows {
		for _, piece := range p.Pieces(row) {
			if ends[at]-ends[at-1] != int32(piece.N) {
				t.Fatalf("row %d: piece %+v from %d to %d", row, piece, ends[at-1], ends[at])
			}
			at++
		}
		if ends[at-1] < int32((i+1)*10) {
			at++
		}
		if ends[at-1] != int32((i+1)*10) {
			t.Fatalf("row %d ends at %d", row, ends[at-1])
		}
	}
}

// Rows are a function of the parameters, and a State resumes with the parameters alone.
func TestPackedResume(t *testing.T) {
	k := combine.Pack{Length: 12, Sampler: sampler.Shuffle{}, Seed: 1}
	source := func() loader.Source { return namedWords{newWords(500)} }
	o := loader.Options{BatchSize: 4, Sampler: sampler.Shuffle{}, Seed: 2}
	ld := openWords(t, packed(t, source(), k), o)
	var snapshot loader.State
	var want []string
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		if b.Step() == 7 {
			snapshot = ld.State()
		} else if b.Step() > 7 {
			want = append(want, fmt.Sprint(tensor.As[int32](b.Field("t"))))
		}
	}
	if text, err := json.Marshal(snapshot); err != nil || len(text) > 300 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	o.Workers = 3
	again, err := loader.Resume(packed(t, source(), k), o, snapshot)
	require.NoError(t, err)
	defer again.Close()
	for b, err := range again.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		if got := fmt.Sprint(tensor.As[int32](b.Field("t"))); got != want[0] {
			t.Fatalf("batch %d: %s, want %s", b.Step(), got, want[0])
		}
		want = want[1:]
	}
	if len(want) != 0 {
		t.Errorf("%d batches are missing", len(want))
	}
	k.Epoch = 1
	if _, err := loader.Resume(packed(t, source(), k), o, snapshot); err == nil || !strings.Contains(err.Error(), "packed(") {
		t.Errorf("other rows: error %v", err)
	}
}

type namedWords struct{ *words }

func (namedWords) ID() string { return "words" }

func TestPackedRefuses(t *testing.T) {
	w := newWords(20)
	for text, k := range map[string]combine.Pack{
		"Length is 0":                             {},
		"MaxOpenRows is -1":                       {Length: 9, MaxOpenRows: -1},
		"it must be OverflowFail":                 {Length: 9, Overflow: 7},
		"have more than Length 3 elements":        {Length: 3},
		`no field "x" of variable length`:         {Length: 9, Fields: []string{"x"}},
		`a Pad for the field "y"`:                 {Length: 9, Pad: map[string]float64{"y": 1}},
		"Pad with 0.5":                            {Length: 9, Pad: map[string]float64{"t": .5}},
		"record 99 at position 0, but the Source": {Length: 9, Sampler: wild{}},
	} {
		if _, err := combine.NewPacked(t.Context(), w, k); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v; want %s", err, text)
		}
	}
	if _, err := combine.NewPacked(t.Context(), newMemorySource(3, 4), combine.Pack{Length: 5}); err == nil || !strings.Contains(err.Error(), "no field of variable length") {
		t.Errorf("error %v", err)
	}
	if _, err := combine.NewPacked(t.Context(), lengthless{w}, combine.Pack{Length: 9}); !errors.Is(err, errWord) {
		t.Errorf("error %v", err)
	}
}

// wild is an order that goes beyond the Source.
type wild struct{}

func (wild) Epoch(int, uint64, int) sampler.Sequence { return wild{} }
func (wild) Len() int                                { return 1 }
func (wild) Fill(_ int, dst []int)                   { dst[0] = 99 }

// An error names the row, and in its text the record.
func TestPackedError(t *testing.T) {
	w := newWords(50)
	p := packed(t, w, combine.Pack{Length: 10})
	w.bad = 33
	ld := openWords(t, p, loader.Options{BatchSize: 3})
	_, err := run(t.Context(), ld, func(loader.Batch) {})
	var failed *loader.Error
	if !errors.As(err, &failed) || !errors.Is(err, errWord) {
		t.Fatalf("error %v", err)
	}
	if !slices.ContainsFunc(p.Pieces(failed.Record), func(piece combine.Piece) bool { return piece.Record == 33 }) {
		t.Errorf("row %d has no record 33", failed.Record)
	}
}

func TestPackedAllocates(t *testing.T) {
	p := packed(t, newWords(2000), combine.Pack{Length: 32})
	dst, rows := make([]byte, 8*32*4), []int{3, 1, 4, 15, 9, 2, 6, 5}
	for _, field := range []string{"t", combine.Positions, combine.Segments} {
		if n := testing.AllocsPerRun(20, func() {
			require.NoError(t, p.Gather(t.Context(), field, rows, dst))
		}); n > 0.5 && !invariants.Enabled { // the race detector has pools forget

			t.Errorf("%s: %v allocations for 8 rows", field, n)
		}
	}
}

// BenchmarkNewPacked packs a million records of 0 to 6 elements.
func BenchmarkNewPacked(b *testing.B) {
	w := newWords(1_000_000)
	for b.Loop() {
		packed(b, w, combine.Pack{Length: 2048, Sampler: sampler.Shuffle{}})
	}
}

// Documents of a few tokens each, packed into rows of eight.
func Example_packed() {
	docs := newWords(12)
	rows, err := combine.NewPacked(context.Background(), docs, combine.Pack{Length: 8, Pad: map[string]float64{"t": -1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ld, err := loader.New(rows, loader.Options{BatchSize: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		tokens, segments := tensor.As[int32](b.Field("t")), tensor.As[int32](b.Field(combine.Segments))
		fmt.Println(tokens[:8], segments[:8])
		fmt.Println("cu_seqlens", rows.CuSeqlens(nil, b.Indices()))
		break
	}
	fmt.Printf("%d rows, %.0f %% used\n", rows.Len(), 100*rows.Used())
	// Output:
	// [100 200 201 202 203 300 301 600] [1 2 2 2 2 3 3 4]
	// cu_seqlens [0 1 5 7 8 12 14 16]
	// 3 rows, 96 % used
}

// remoteWords is a Source of words that come over a network.
type remoteWords struct {
	*words
	fetched []int
}

func (w *remoteWords) LookaheadBytes() int64 { return 5 }

func (w *remoteWords) Fetch(_ context.Context, field string, indices []int) error {
	w.fetched = append(w.fetched, indices...)
	if field != "t" {
		return fmt.Errorf("field %q is fetched", field)
	}
	return nil
}

func (w *remoteWords) NetworkStats() (int64, time.Duration, float64) { return 1, 2, 3 }

// TestPackedPassesOn asks for the records of rows.
func TestPackedPassesOn(t *testing.T) {
	src := &remoteWords{words: newWords(40)}
	p := packed(t, src, combine.Pack{Length: 16, Sampler: sampler.Shuffle{}})
	var want []int
	var names []string
	for _, row := range []int{2, 0} {
		for _, piece := range p.Pieces(row) {
			want = append(want, int(piece.Record))
			if row == 2 {
				names = append(names, fmt.Sprint(piece.Record))
			}
		}
	}
	for _, field := range []string{combine.Positions, "t", combine.Segments} {
		require.NoError(t, p.Fetch(t.Context(), field, []int{2, 0}))
	}
	if !slices.Equal(src.fetched, want) || p.LookaheadBytes() != 5 {
		t.Errorf("fetched %v, want %v; horizon %d", src.fetched, want, p.LookaheadBytes())
	}
	if n, waited, rate := p.NetworkStats(); n != 1 || waited != 2 || rate != 3 {
		t.Errorf("link %d, %v, %v", n, waited, rate)
	}
	if got, want := p.Location("t", 2), "of records "+strings.Join(names, ", "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	near := packed(t, newWords(40), combine.Pack{Length: 16})
	if n, _, _ := near.NetworkStats(); n != 0 || near.LookaheadBytes() != 0 || near.Fetch(t.Context(), "t", []int{0}) != nil {
		t.Error("a Source at hand looks like one over a network")
	}
}
