package mmapds

import (
	"math/rand/v2"
	"testing"

	"github.com/penstock/penstock/store"
)

// The places of records are found whatever is deleted, also over the ranges of a split.
func TestPlacesOfLiveRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, share := range []float64{0, 0.001, 0.01, 0.5, 0.99, 0.9995} {
		const records = 40_000
		gone := make([]uint64, (records+63)/64)
		for i := range records {
			if rng.Float64() < share || share == 0.5 && i > 10_000 && i < 20_000 {
				gone[i/64] |= 1 << (i % 64)
			}
		}
		gone[1] |= 1
		m := &store.Manifest{Records: records, Splits: []store.Split{
			{Name: "a", Ranges: [][2]int64{{3, 1000}, {12_345, 30_001}}}, {Name: "b", Ranges: [][2]int64{{0, 3}, {1000, 12_345}, {30_001, records}}},
		}, Deleted: store.NewDeleted(gone, records)}
		for _, split := range []string{"", "a", "b"} {
			checkLive(t, m, split, gone)
		}
	}
}

func checkLive(t *testing.T, m *store.Manifest, split string, gone []uint64) {
	t.Helper()
	var want []int
	stored := 0
	for _, r := range rangesOf(m, split) {
		for i := int(r[0]); i < int(r[1]); i++ {
			if gone[i/64]>>(i%64)&1 == 0 {
				want = append(want, stored)
			}
			stored++
		}
	}
	l, err := newLive(&store.Dataset{Manifest: m, Split: split})
	if len(want) == 0 {
		if err == nil {
			t.Fatal("a split without records")
		}
		return
	}
	if err != nil || l.n != len(want) || l.stored != stored {
		t.Fatalf("%d of %d records, want %d of %d: %v", l.n, l.stored, len(want), stored, err)
	}
	for i, place := range want {
		if got := l.At(i); got != place || l.Before(place) != i {
			t.Fatalf("record %d is at %d, want %d; the record there is %d", i, got, place, l.Before(place))
		}
	}
}
