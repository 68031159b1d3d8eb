package mmapds

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

// BenchmarkPlacesOfLiveRecords finds the places of shuffled records, some deleted.
func BenchmarkPlacesOfLiveRecords(b *testing.B) {
	const records = 10_000_000
	for _, share := range []float64{0.001, 0.01, 0.1, 0.5} {
		b.Run(fmt.Sprint(share), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(3, 4))
			gone := make([]uint64, (records+63)/64)
			for range int(share * records) {
				i := rng.IntN(records)
				gone[i/64] |= 1 << (i % 64)
			}
			m := &store.Manifest{Records: records, Deleted: store.NewDeleted(gone, records)}
			l, err := newLive(&store.Dataset{Manifest: m})
			require.NoError(b, err)
			order := rng.Perm(l.n)
			b.ResetTimer()
			for i := 0; i < b.N; i += 256 {
				k := i % (len(order) - 256)
				require.NoError(b, l.translated("x", order[k:k+256], func([]int) error { return nil }))
			}
		})
	}
}
