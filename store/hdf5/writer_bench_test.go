package hdf5

import (
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
)

// BenchmarkWriter writes 500 images of 3x224x224 with labels, checksums and fsync included, and
// compares with the flat format.
func BenchmarkWriter(b *testing.B) {
	const n = 500
	s := imageSchema(224, 224)
	r := store.NewRecord(s)
	fill(s, r, 0)
	formats := map[string]func(path string) (store.Writer, error){
		"flat": func(path string) (store.Writer, error) {
			return flat.Create(path, s, flat.Options{Overwrite: true})
		},
		"hdf5": func(path string) (store.Writer, error) {
			return Create(path, s, Options{Records: n, Overwrite: true})
		},
		"hdf5-unknown": func(path string) (store.Writer, error) {
			return Create(path, s, Options{Overwrite: true})
		},
		"hdf5-half-full": func(path string) (store.Writer, error) {
			return Create(path, s, Options{Records: 2 * n, Overwrite: true})
		},
	}
	for name, create := range formats {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "x")
			b.SetBytes(int64(n * s.RecordBytes()))
			for b.Loop() {
				w, err := create(path)
				if err != nil {
					b.Fatal(err)
				}
				for range n {
					if err := w.Append(r); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := w.Commit(store.Info{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
