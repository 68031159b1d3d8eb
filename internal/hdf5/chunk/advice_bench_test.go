package chunk_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// advised writes one dataset x a file in several ways, and flat.h5 and small-flat.h5 with the same
// records, which can be mapped.
const advised = `
import h5py, numpy as np, sys
rng = np.random.default_rng(1)
y, x = np.mgrid[0:224, 0:224] / 224.0
a = np.empty((512, 3, 224, 224), "u1")
for i in range(len(a)):
    p = 118 + 60 * np.sin(i % 9 * x + y) + 40 * np.cos(3 * x * y + i)
    a[i] = np.clip(p + rng.normal(0, 9, p.shape), 0, 255)
s = rng.integers(0, 40, (50000, 28, 28), "u1")
z = np.zeros((512, 3, 224, 224), "u1")
for name, data, kw in [
    ("flat", a, {}), ("small-flat", s, {}),
    ("gzip-auto", a, dict(chunks=True, compression="gzip")),
    ("gzip-1", a, dict(chunks=(1, 3, 224, 224), compression="gzip")),
    ("gzip-32", a, dict(chunks=(32, 3, 224, 224), compression="gzip")),
    ("lzf-auto", a, dict(chunks=True, compression="lzf")),
    ("plain-auto", a, dict(chunks=True)), ("plain-8", a, dict(chunks=(8, 3, 224, 224))),
    ("zeros-1", z, dict(chunks=(1, 3, 224, 224), compression="gzip")),
    ("small-gzip-auto", s, dict(chunks=True, compression="gzip")),
    ("small-gzip-64", s, dict(chunks=(64, 28, 28), compression="gzip")),
    ("small-plain", s, dict(chunks=(64, 28, 28))),
]:
    with h5py.File(sys.argv[1] + "/" + name + ".h5", "w") as f:
        f.create_dataset("x", data=data, **kw)
for name, kw in [("float-be", {}), ("float-flat", {}), ("float-shuffle", dict(chunks=(1, 37632), shuffle=True, compression="gzip", fletcher32=True))]:
    with h5py.File(sys.argv[1] + "/" + name + ".h5", "w") as f:
        f.create_dataset("x", data=(a[:, 0, :168, :].reshape(512, -1) / 255).astype(">f4" if name == "float-be" else "<f4"), **kw)
`

// The gain that Advice promises and the gain of reading records at random: promised/x and measured/x, in CPU time.
func BenchmarkAdvice(b *testing.B) {
	dir := b.TempDir()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", advised, dir).CombinedOutput(); err != nil {
		b.Skipf("%s with h5py is needed (set PYTHON): %v: %s", python, err, out)
	}
	for _, c := range [][2]string{
		{"gzip-auto", "flat"}, {"gzip-1", "flat"}, {"gzip-32", "flat"}, {"lzf-auto", "flat"}, {"plain-auto", "flat"}, {"plain-8", "flat"}, {"zeros-1", "flat"},
		{"small-gzip-auto", "small-flat"}, {"small-gzip-64", "small-flat"}, {"small-plain", "small-flat"},
		{"float-be", "float-flat"}, {"float-shuffle", "float-flat"},
	} {
		b.Run(c[0], func(b *testing.B) {
			a := adviceOf(b, filepath.Join(dir, c[0]+".h5"))
			var old, converted float64
			for b.Loop() {
				old, converted = randomly(b, filepath.Join(dir, c[0]+".h5")), randomly(b, filepath.Join(dir, c[1]+".h5"))
			}
			b.ReportMetric(a.Gain(), "promised/x")
			b.ReportMetric(old/converted, "measured/x")
			b.ReportMetric(old*1e9, "old-ns")
			b.ReportMetric(converted*1e9, "converted-ns")
			b.ReportMetric(a.Nanos, "promised-old-ns")
			b.ReportMetric(a.Ratio, "ratio")
		})
	}
}

func adviceOf(b *testing.B, path string) chunk.Advice {
	f, err := os.Open(path)
	require.NoError(b, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(b, err)
	meta, err := meta.Open(f, info.Size())
	require.NoError(b, err)
	d, err := meta.Dataset("x")
	require.NoError(b, err)
	a, err := chunk.Advise(d, 32)
	require.NoError(b, err)
	return a
}

// randomly returns the seconds that a record takes, read alone, over some of all in random order.
func randomly(b *testing.B, path string) float64 {
	ds, err := mmapds.Open(path)
	require.NoError(b, err)
	defer ds.Close()
	require.NoError(b, ds.Warm("x", 0, ds.Len()))
	order := rand.New(rand.NewPCG(1, 1)).Perm(ds.Len())
	dst := make([]byte, ds.Specs()[0].RecordBytes())
	began, n := usage.Clock(), 0
	for n < 4096 && (n < 16 || (usage.Clock()-began).Seconds() < 0.3) {
		for k := range 16 {
			i := order[(n+k)%len(order)]
			require.NoError(b, ds.Gather(b.Context(), "x", []int{i}, dst))
		}
		n += 16
	}
	return (usage.Clock() - began).Seconds() / float64(n)
}
