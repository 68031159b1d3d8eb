package mmapds_test

import (
	"path/filepath"
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
			path := filepath.Join(b.TempDir(), "ds")
			w, err := store.CreateFlat(path, s, store.FlatOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			r := store.NewRecord(s)
			if field.Ragged {
				r.Values[0] = make([]byte, 2000)
			}
			for range total / len(r.Values[0]) {
				if err := w.Append(r); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := w.Commit(store.Info{}); err != nil {
				b.Fatal(err)
			}
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
