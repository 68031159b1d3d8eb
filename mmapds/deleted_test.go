package mmapds_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
)

// Every method of a dataset with deleted records gives what it gives of the same records in one that has them.
func TestDeletedRecordsAreLeftOut(t *testing.T) {
	for _, of := range []func(testing.TB, int) string{build, buildRagged} {
		path := of(t, 1100)
		rng := rand.New(rand.NewPCG(1, 2))
		words := make([]uint64, 1100/64+1)
		for i := range 1100 {
			if i > 900 && i < 1000 || rng.IntN(20) == 0 {
				words[i/64] |= 1 << (i % 64)
			}
		}
		if _, err := edit.At(path).Delete(edit.Chosen{Words: words}, edit.Options{}); err != nil {
			t.Fatal(err)
		}
		all, err := mmapds.Open(path, mmapds.WithDeleted())
		require.NoError(t, err)
		defer all.Close()
		for _, mode := range []mmapds.VerifyMode{mmapds.VerifyOff, mmapds.VerifyAlways} {
			compareLive(t, openChecked(t, path, mode), all, words)
		}
	}
}

func compareLive(t *testing.T, ds, all *mmapds.Dataset, words []uint64) {
	t.Helper()
	var places []int
	for i := range all.Len() {
		if words[i/64]>>(i%64)&1 == 0 {
			places = append(places, i)
		}
	}
	if ds.Len() != len(places) || all.ID() == ds.ID() {
		t.Fatalf("%d records, want %d; ids %s and %s", ds.Len(), len(places), ds.ID(), all.ID())
	}
	rng, ctx := rand.New(rand.NewPCG(5, 6)), context.Background()
	for _, f := range ds.Specs() {
		for range 40 {
			a := rng.IntN(ds.Len())
			b := a + rng.IntN(min(60, ds.Len()-a)+1)
			list := rng.Perm(ds.Len())[:b-a]
			there := make([]int, len(list))
			for k, i := range list {
				there[k] = places[i]
				if ds.Stored(i) != places[i] {
					t.Fatalf("record %d is stored at %d, want %d", i, ds.Stored(i), places[i])
				}
			}
			require.NoError(t, ds.Warm(f.Name, a, b))
			require.NoError(t, ds.Prefetch(f.Name, a, b))
			if b > a && ds.Contiguous(f.Name, a, b) && places[b-1]-places[a] != b-1-a {
				t.Fatalf("%s: records [%d, %d) are one piece, with deleted ones between", f.Name, a, b)
			}
			x, y := read(t, ctx, ds, f.Name, f.Ragged, list), read(t, ctx, all, f.Name, f.Ragged, there)
			if !bytes.Equal(x, y) {
				t.Fatalf("%s: records %v differ", f.Name, list)
			}
			if x, y = slice(t, ds, f.Name, f.Ragged, a, b), read(t, ctx, all, f.Name, f.Ragged, places[a:b]); !bytes.Equal(x, y) {
				t.Fatalf("%s: records [%d, %d) differ", f.Name, a, b)
			}
			if i := min(a, ds.Len()-1); ds.Location(f.Name, i) != all.Location(f.Name, places[i]) {
				t.Fatalf("record %d is at %s, want %s", i, ds.Location(f.Name, i), all.Location(f.Name, places[i]))
			}
		}
		if err := ds.Gather(ctx, f.Name, []int{ds.Len()}, make([]byte, f.RecordBytes())); !f.Ragged && err == nil {
			t.Error("a record that does not exist")
		}
		if !f.Ragged {
			checkOver(t, ds, f.Name, rng.Perm(ds.Len()))
		}
	}
	for _, f := range ds.Specs() {
		if f.Ragged {
			continue
		}
		for _, err := range records(t, ds, f.Name).Iter([]int{3, ds.Len(), 4}) {
			if err != nil {
				return
			}
		}
		t.Error("no error of a record that does not exist")
	}
}

func read(t *testing.T, ctx context.Context, ds *mmapds.Dataset, field string, ragged bool, list []int) []byte {
	t.Helper()
	if ragged {
		offsets, lengths := make([]int64, len(list)+1), make([]int64, len(list)+1)
		data, err := ds.GatherRagged(ctx, field, list, offsets, nil)
		require.NoError(t, err)
		if err := ds.Lengths(ctx, field, list, lengths); err != nil || !slices.Equal(lengths, offsets) {
			t.Fatalf("lengths %v, want %v: %v", lengths, offsets, err)
		}
		return data
	}
	i := slices.IndexFunc(ds.Schema().Fields, func(f store.Field) bool { return f.Name == field })
	out := make([]byte, len(list)*ds.Schema().Fields[i].RecordBytes())
	require.NoError(t, ds.Gather(ctx, field, list, out))
	return out
}

func slice(t *testing.T, ds *mmapds.Dataset, field string, ragged bool, a, b int) []byte {
	t.Helper()
	if ragged {
		v, err := ds.SliceRagged(field, a, b, make([]int64, b-a+1))
		require.NoError(t, err)
		return v.Bytes()
	}
	v, err := ds.Slice(field, a, b)
	require.NoError(t, err)
	return v.Bytes()
}
