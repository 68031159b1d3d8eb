package loader_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/invariants"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
)

// TestJoinedGathers gathers lists of records of three sources, one of which may have no views,
// small ones and large ones, alone and by several goroutines.
func TestJoinedGathers(t *testing.T) {
	for _, size := range []int{3, 5000} {
		for _, nowhere := range []bool{false, true} {
			one, two, three := newMemorySource(40, size), newMemorySource(1, size), newMemorySource(300, size)
			three.nowhere = nowhere
			all, err := combine.NewConcat(one, two, newMemorySource(0, size), three)
			require.NoError(t, err)
			want := slices.Concat(one.data[0], two.data[0], three.data[0])
			rng := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{0, 1, 2, 7, 100} {
				for _, span := range []int{1, 40, 41, all.Len()} {
					indices := make([]int, n)
					for i := range indices {
						indices[i] = rng.IntN(span)
					}
					dst := make([]byte, n*size)
					require.NoError(t, all.Gather(t.Context(), "x", indices, dst))
					for k, i := range indices {
						if !bytes.Equal(dst[k*size:(k+1)*size], want[i*size:(i+1)*size]) {
							t.Errorf("%d bytes, views %v: record %d of %v is wrong", size, !nowhere, i, indices)
						}
					}
				}
			}
		}
	}
}

// longWords is words with up to most rows per record; each row holds its number.
func longWords(n, most int) *words {
	w := newWords(n)
	w.all, w.ends = nil, []int64{0}
	for i := range n {
		for range i * most / max(1, n-1) {
			w.all = binary.LittleEndian.AppendUint32(w.all, uint32(len(w.all)))
		}
		w.ends = append(w.ends, int64(len(w.all)/4))
	}
	return w
}

// TestJoinedGathersRagged gathers short and long records of several sources, which have views or not.
func TestJoinedGathersRagged(t *testing.T) {
	for _, most := range []int{3, 5000} {
		for _, nowhere := range []bool{false, true} {
			one, two := longWords(30, most), longWords(50, most)
			two.nowhere = nowhere
			all, err := combine.NewConcat(one, two, longWords(1, most))
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{0, 1, 2, 40} {
				indices, offsets, lengths := make([]int, n), make([]int64, n+1), make([]int64, n+1)
				var want []byte
				for i := range indices {
					indices[i] = rng.IntN(all.Len())
					part, r := all.Locate(indices[i])
					if w := []*words{one, two}; part < 2 {
						want = append(want, w[part].all[w[part].ends[r]*4:w[part].ends[r+1]*4]...)
					}
				}
				require.NoError(t, all.Lengths(t.Context(), "t", indices, lengths))
				got, err := all.GatherRagged(t.Context(), "t", indices, offsets, nil)
				if err != nil || !bytes.Equal(got, want) || !slices.Equal(offsets, lengths) || offsets[n] != int64(len(want)/4) {
					t.Errorf("%d rows at most, views %v: records %v are wrong, %v", most, !nowhere, indices, err)
				}
			}
			two.bad = 7
			if _, err := all.GatherRagged(t.Context(), "t", []int{1, 37, 2}, make([]int64, 4), nil); !errors.Is(err, errWord) {
				t.Errorf("error %v", err)
			}
		}
	}
}

// TestJoinedGathersByOneCall counts calls of each source for small records in any order.
func TestJoinedGathersByOneCall(t *testing.T) {
	one, two := newMemorySource(50, 4), newMemorySource(50, 4)
	calls := make(map[*memory]int)
	for _, m := range []*memory{one, two} {
		m.before = func(_ context.Context, _ string, indices []int) error {
			calls[m] += len(indices)
			if len(indices) != 20 {
				return fmt.Errorf("asked for %d records", len(indices))
			}
			return nil
		}
	}
	all, err := combine.NewConcat(one, two)
	require.NoError(t, err)
	indices := make([]int, 40)
	for k := range indices {
		indices[k] = k%2*50 + k
	}
	require.NoError(t, all.Gather(t.Context(), "x", indices, make([]byte, 160)))
	if calls[one] != 20 || calls[two] != 20 {
		t.Errorf("%d and %d records", calls[one], calls[two])
	}
	two.before = func(context.Context, string, []int) error { return addressed{3} }
	var named interface{ Record() int }
	if err := all.Gather(t.Context(), "x", indices, make([]byte, 160)); !errors.As(err, &named) || named.Record() != 53 {
		t.Errorf("error %v", err)
	}
	one.before, two.before = nil, nil
	dst := make([]byte, 160)
	n := testing.AllocsPerRun(100, func() { _ = all.Gather(context.Background(), "x", indices, dst) })
	if n >= 1 && !invariants.Enabled { // as a sync.Pool drops what it has, now and then, in builds with -race
		t.Errorf("%v allocations", n)
	}
}

// remoteSource is a Source whose records come over a network.
type remoteSource struct {
	*memory
	horizon int64
	fetched []int
	fails   error
}

func (a *remoteSource) LookaheadBytes() int64 { return a.horizon }

func (a *remoteSource) Fetch(_ context.Context, _ string, indices []int) error {
	a.fetched = append(a.fetched, indices...)
	return a.fails
}

func (a *remoteSource) NetworkStats() (int64, time.Duration, float64) {
	return a.horizon, time.Duration(a.horizon), float64(a.horizon)
}

func (a *remoteSource) DescribeReads(field string) (how, why string, resident float64) {
	return "fetched", field, float64(a.horizon) / 10
}

func (a *remoteSource) Location(field string, record int) string {
	return fmt.Sprintf("%s %d", field, record)
}

// TestJoinedPassesOn asks sources of which some come over a network.
func TestJoinedPassesOn(t *testing.T) {
	a, b, near := &remoteSource{memory: newMemorySource(10, 4), horizon: 3}, &remoteSource{memory: newMemorySource(30, 4), horizon: 7}, newMemorySource(5, 4)
	all, err := combine.NewConcat(a, near, b)
	require.NoError(t, err)
	if got := all.LookaheadBytes(); got != 7 {
		t.Errorf("horizon %d", got)
	}
	require.NoError(t, all.Fetch(t.Context(), "x", []int{20, 3, 12, 15, 9}))
	if !slices.Equal(a.fetched, []int{3, 9}) || !slices.Equal(b.fetched, []int{5, 0}) {
		t.Errorf("fetched %v and %v", a.fetched, b.fetched)
	}
	b.fails = errBad
	if err := all.Fetch(t.Context(), "x", []int{20}); !errors.Is(err, errBad) {
		t.Errorf("error %v", err)
	}
	if n, waited, rate := all.NetworkStats(); n != 10 || waited != 10 || rate != 7 {
		t.Errorf("link %d, %v, %v", n, waited, rate)
	}
	if x, y, z := all.Location("x", 9), all.Location("x", 10), all.Location("x", 16); x != "x 9" || y != "" || z != "x 1" {
		t.Errorf("places %q, %q, %q", x, y, z)
	}
	if how, why, in := all.DescribeReads("x"); how != "" || why != "" || in != -1 {
		t.Errorf("with a source that does not say: %q, %q, %v", how, why, in)
	}
	both, err := combine.NewConcat(a, b)
	require.NoError(t, err)
	if how, why, in := both.DescribeReads("x"); how != "fetched" || why != "source 0: x; source 1: x" || in != 0.6 {
		t.Errorf("%q, %q, %v", how, why, in)
	}
	if local, err := combine.NewConcat(near, near); err != nil || local.LookaheadBytes() != 0 {
		t.Errorf("horizon %d, %v", local.LookaheadBytes(), err)
	}
}

// TestErrorsHaveThePlace fails in a Transform, and in a Source that itself names the record, and so
// its place.
func TestErrorsHaveThePlace(t *testing.T) {
	fail := func(r loader.Record) error {
		if r.Index == 33 {
			return errBad
		}
		return nil
	}
	o := loader.Options{BatchSize: 10, Transforms: map[string]loader.Transform{"x": negate{fail}}}
	src := &remoteSource{memory: newMemorySource(50, 4)}
	_, err := run(t.Context(), openWords(t, src, o), ignore)
	var e *loader.Error
	if !errors.As(err, &e) || e.Location != "x 33" || err.Error() != `loader: batch 3: record 33 (x 33): field "x": transform: bad sector` {
		t.Errorf("error %v", err)
	}
	var reported []string
	o.OnError, o.Report = loader.Backfill, func(e *loader.Error) { reported = append(reported, e.Location) }
	if _, err := run(t.Context(), openWords(t, src, o), ignore); err != nil || !slices.Equal(reported, []string{"x 33"}) {
		t.Errorf("reported %q, %v", reported, err)
	}
	src.before = func(context.Context, string, []int) error { return addressed{7} }
	_, err = run(t.Context(), openWords(t, src, loader.Options{BatchSize: 10, Sampler: sampler.Shuffle{}}), ignore)
	if !errors.As(err, &e) || e.Record != 7 || e.Location != "" {
		t.Errorf("error %v", err)
	}
}
