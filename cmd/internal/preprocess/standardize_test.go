package preprocess

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

// makeNormalized writes arrays, and the same normalized by their own statistics, computed by
// NumPy in float64.
const makeNormalized = `
import json, os, sys, numpy as np
os.chdir(sys.argv[1])
rng = np.random.default_rng(3)
n = 700
x = (rng.gamma(2, 30, (n, 5)) + 1e4).astype("f4")
x[:, 3] = 7
x[11, 1] = np.nan
grid = rng.normal(3, 9, (n, 2, 3, 4))
half = rng.normal(3, 9, n).astype("f2")
label = rng.normal(3, 9, n)
digits = rng.integers(0, 256, (n, 4, 4), dtype="u1")
np.savez("in.npz", x=x, grid=grid, half=half, label=label, k=np.arange(n))
np.save("digits.npy", digits)

def own(a, axis, dtype):
    a = a.astype("f8")
    std = np.nanstd(a, axis)
    return ((a - np.nanmean(a, axis)) / np.where(std == 0, 1, std)).astype(dtype)

np.savez("all.npz", x=own(x, 0, "f4"), grid=own(grid, None, "f8"), half=own(half, 0, "f2"), label=label, k=np.arange(n))
channels = own(grid.transpose(0, 2, 3, 1).reshape(-1, 2), 0, "f8").reshape(n, 3, 4, 2).transpose(0, 3, 1, 2)
np.savez("some.npz", x=x, grid=channels, half=half, label=own(label, 0, "f8"), k=np.arange(n))
print(digits.mean() / 255, digits.std() / 255)

boxes = [rng.normal(5, 2, (i % 3, 4)).tolist() for i in range(20)]
with open("in.jsonl", "w") as f:
    for b in boxes:
        print(json.dumps({"boxes": b, "y": len(b)}), file=f)
rows = np.concatenate([np.array(b, "f4").reshape(-1, 4) for b in boxes])
np.savez("lists.npz", **{"boxes.values": own(rows, 0, "f4"), "boxes.offsets": np.cumsum([0] + [len(b) for b in boxes]), "y": np.array([len(b) for b in boxes])})
`

// closeDatasets compares like check_datasets.py, floats to within their rounding.
const closeDatasets = `
import sys, glob, numpy as np, h5py
for ds, want in zip(sys.argv[1::2], sys.argv[2::2]):
    want = np.load(want)
    for name in want.files:
        if ds.endswith(".h5"):
            with h5py.File(ds) as f:
                got = f[name.replace(".", "/")][...]
        else:
            got = np.concatenate([np.load(p) for p in sorted(glob.glob(f"{ds}/{name}-?????.npy"))])
        w = want[name]
        assert got.dtype == w.dtype and got.shape == w.shape, f"{ds}: {name} is {got.dtype} {got.shape}, want {w.dtype} {w.shape}"
        eps = 1e-9 if w.dtype.kind != "f" else {2: 2e-3, 4: 1e-6, 8: 1e-9}[w.dtype.itemsize]
        assert np.allclose(got.astype("f8"), w.astype("f8"), eps, eps, equal_nan=True), f"{ds}: {name} differs"
`

// Arrays get their own statistics as NumPy computes them, in both formats, for any number of
// workers; the recipe builds the same dataset again.
func TestNormalizeArrays(t *testing.T) {
	h5test.Python(t)
	dir := t.TempDir()
	h5test.Run(t, "-c", makeNormalized, dir)
	var check []string
	for _, run := range []struct{ name, source, normalize, want string }{
		{"all", "in.npz", "dataset", "all.npz"},
		{"some", "in.npz", "dataset:grid@0,label", "some.npz"},
		{"lists", "in.jsonl", "dataset:boxes", "lists.npz"},
	} {
		in := filepath.Join(dir, run.source)
		var first *prepare.Summary
		for _, dest := range []string{"ds", "ds.h5"} {
			c := prepare.DefaultConfig()
			c.Source, c.Dest = in, filepath.Join(dir, run.name+"."+dest)
			if run.name == "lists" {
				c.Fields = "boxes:float32[*,4],y"
			}
			c.Images.Normalize = normalizeOf(t, run.normalize)
			s := mustRun(t, c)
			check = append(check, c.Dest, filepath.Join(dir, run.want))
			if first == nil {
				first = s
			}
			if c.Workers, c.Dest = 5, filepath.Join(dir, run.name+".workers"); dest == "ds" && mustRun(t, c).ID != first.ID {
				t.Errorf("%s: another dataset with 5 workers", run.name)
			}
		}
		m := rawtest.Manifest(t, first.Dest)
		c := fromRecipe(t, m.Recipe, in, filepath.Join(dir, run.name+".again"))
		if again := mustRun(t, c); again.ID != first.ID {
			t.Errorf("%s: the recipe makes %s, not %s", run.name, again.ID, first.ID)
		}
		if text := string(rawtest.Manifest(t, c.Dest).Recipe.Transforms); text != string(m.Recipe.Transforms) || !strings.Contains(text, "Standardize") {
			t.Errorf("%s: recipe %s, of the recipe %s", run.name, m.Recipe.Transforms, text)
		}
		c.Append = true
		if run.name != "lists" {
			if s := mustRun(t, c); s.Records != 1400 {
				t.Errorf("%s: %d records after an append by the recipe", run.name, s.Records)
			}
		}
	}
	h5test.Run(t, append([]string{"-c", closeDatasets}, check...)...)
}

func normalizeOf(t testing.TB, text string) prepare.Normalize {
	t.Helper()
	n, err := prepare.ParseNormalize(text)
	require.NoError(t, err)
	return n
}

// Bytes of pixels without a layout, as MNIST's, keep the statistics for the loader.
func TestNormalizeDigits(t *testing.T) {
	digits, sum, squares := make([]byte, 128+20*16), 0.0, 0.0
	copy(digits, fmt.Sprintf("\x93NUMPY\x01\x00\x76\x00%-118s", "{'descr': '|u1', 'fortran_order': False, 'shape': (20, 4, 4), }"))
	for i := range digits[128:] {
		v := byte(i * i)
		digits[128+i], sum, squares = v, sum+float64(v), squares+float64(v)*float64(v)
	}
	path := filepath.Join(t.TempDir(), "digits.npy")
	require.NoError(t, os.WriteFile(path, digits, 0o666))
	c := plain(t, path)
	c.Images.Normalize = normalizeOf(t, "dataset")
	mustRun(t, c)
	n, mean := rawtest.Manifest(t, c.Dest).Fields[0].Normalization, sum/320
	if n == nil || n.Applied || math.Abs(n.Mean[0]-mean/255) > 1e-12 || math.Abs(n.Std[0]-math.Sqrt(squares/320-mean*mean)/255) > 1e-12 {
		t.Errorf("normalization %+v, want mean %v", n, mean/255)
	}
}

func TestNormalizeArraysErrors(t *testing.T) {
	dir := t.TempDir()
	rawtest.Put(t, dir, "x.csv", []byte("x,n,v\n0.5,1,[1.5 2]\n1.5,2,[2.5 3]\n"))
	rawtest.Put(t, dir, "v.jsonl", []byte("{\"x\":0.5,\"n\":1,\"v\":[1.5,2]}\n{\"x\":1.5,\"n\":2,\"v\":[2.5,1e999]}\n{\"x\":1.5,\"n\":2,\"v\":[2.5,1]}\n"))
	for _, c := range []struct{ source, fields, normalize, want string }{
		{"x.csv", "n", "dataset", "has no images and no arrays of floats"},
		{"x.csv", "x,n", "dataset:xx", `there is no field "xx"; did you mean "x"?`},
		{"x.csv", "x,n", "dataset:n", "n is of int64; convert it to floats with the transform Cast"},
		{"x.csv", "x,n", "dataset:x@0", "x has no axis 0 in records of shape ()"},
	} {
		config := plain(t, filepath.Join(dir, c.source))
		config.Fields, config.Images.Normalize = c.fields, normalizeOf(t, c.normalize)
		if got := runError(t, config); !strings.Contains(got, c.want) {
			t.Errorf("--normalize %s: %s, want %s", c.normalize, got, c.want)
		}
	}
	c := plain(t, filepath.Join(dir, "x.csv"))
	c.Fields, c.Images.Normalize = "x,n", normalizeOf(t, "dataset")
	mustRun(t, c)
	c.Append = true
	if _, err := prepare.Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "mean and std would describe the new records alone") {
		t.Errorf("append: %v", err)
	}
	c.Append, c.Rank, c.Dest = false, prepare.Rank{Index: 0, Size: 2}, filepath.Join(t.TempDir(), "parts")
	if _, err := prepare.Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "mean and std of all samples are needed before the first is written") {
		t.Errorf("rank: %v", err)
	}
	for _, text := range []string{"dataset:", "dataset:x@", "dataset:x@-1", "dataset:x@y", "dataset:x,,y"} {
		if n, err := prepare.ParseNormalize(text); err == nil || !strings.Contains(err.Error(), "is not FIELD or FIELD@AXIS") {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
	}
}
