package verify_test

import (
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/tensor"
)

// BenchmarkVerify verifies 128 MiB that are in memory: checksums of blocks, and the identity.
func BenchmarkVerify(b *testing.B) {
	const total = 128 << 20
	tokens := store.NewRagged("x", tensor.Int32)
	for name, field := range map[string]store.Field{
		"images": store.NewField("x", tensor.Uint8, 3, 224, 224), "labels": store.NewField("x", tensor.Int64), "ragged": tokens,
	} {
		b.Run(name, func(b *testing.B) {
			s := store.Schema{Fields: []store.Field{field}}
			size := len(store.NewRecord(s).Values[0])
			if field.Ragged {
				size = 2000
			}
			path := write(b, s, total/size, func(_ int, r *store.Record) {
				if field.Ragged {
					r.Values[0] = make([]byte, size)
				}
			})
			d, err := store.Open(path, store.OpenOptions{})
			require.NoError(b, err)
			b.SetBytes(d.Bytes())
			b.ReportAllocs()
			for b.Loop() {
				if v, err := verify.Dataset(b.Context(), d, verify.Options{}); err != nil || v.Corruptions > 0 || !v.Identity {
					b.Fatal(v, err)
				}
			}
		})
	}
}
