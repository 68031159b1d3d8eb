package meta

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
)

const benchScript = `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w", libver=sys.argv[2]) as f:
    f.create_dataset("x", data=np.zeros((65536, 16), "u1"), chunks=(1, 16), maxshape=eval(sys.argv[3]))
`

// BenchmarkChunks reads indexes of 65,536 chunks of each kind, the file being cached by the
// system.
func BenchmarkChunks(b *testing.B) {
	py := h5test.Python(b)
	for _, bm := range []struct{ libver, max string }{
		{"earliest", "None"}, {"latest", "None"}, {"latest", "(None, 16)"}, {"latest", "(None, None)"},
	} {
		name := filepath.Join(b.TempDir(), "x.h5")
		if out, err := exec.Command(py, "-c", benchScript, name, bm.libver, bm.max).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		f, d := openDataset(b, name)
		b.Run(fmt.Sprint(d.Layout.Index), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				table, err := d.Chunks()
				if err != nil || len(table.Chunks) != 65536 {
					b.Fatal(len(table.Chunks), err)
				}
			}
			b.ReportMetric(65536*float64(b.N)/b.Elapsed().Seconds(), "chunks/s")
		})
		f.Close()
	}
}

func openDataset(b *testing.B, name string) (*os.File, *Dataset) {
	r, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	info, err := r.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f, err := Open(r, info.Size())
	if err != nil {
		b.Fatal(err)
	}
	d, err := f.Dataset("/x")
	if err != nil {
		b.Fatal(err)
	}
	return r, d
}

// BenchmarkOpen reads all metadata of files in memory: 37 datasets, then 1,828 groups and
// 102 datasets.
func BenchmarkOpen(b *testing.B) {
	dir := generate(b)
	for _, name := range []string{"earliest-contiguous-0.h5", "latest-contiguous-0.h5", "earliest-groups-0.h5",
		"latest-groups-0.h5"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(bytes.NewReader(data), int64(len(data))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
