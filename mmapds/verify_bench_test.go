package mmapds_test

import (
	"testing"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
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
			r := store.NewRecord(s)
			if field.Ragged {
				r.Values[0] = make([]byte, 2000)
			}
			path := write(b, s, store.FlatOptions{}, total/len(r.Values[0]), func(int) *store.Record { return r })
			d, err := mmapds.Locate(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(d.Bytes())
			b.ReportAllocs()
			for b.Loop() {
				if v, err := mmapds.Verify(b.Context(), d, mmapds.VerifyOptions{}); err != nil || v.Damages > 0 || !v.Identity {
					b.Fatal(v, err)
				}
			}
		})
	}
}
