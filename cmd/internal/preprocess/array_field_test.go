package preprocess

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

// makeArrays writes arrays and the same after each operation, as NumPy has it.
const makeArrays = `
import json, os, sys, numpy as np
os.chdir(sys.argv[1])
rng = np.random.default_rng(3)
n = 9
x = rng.gamma(2, 30, (n, 3, 4)).astype("f4")
x[0, 0] = [0, 1e-7, -1, 3e38]
k = rng.integers(0, 5, n).astype("i4")
grid = rng.integers(0, 3, (n, 2, 2)).astype("u1")
np.savez("in.npz", x=x, k=k, grid=grid, short=x, long=x, norm=x, clip=x)
with np.errstate(divide="ignore"):
    log = np.log1p(x.astype("f8")).astype("f4")
np.savez("arrays.npz", x=log.reshape(n, 2, 6), k=np.eye(5, dtype="f4")[k], grid=np.eye(3, dtype="u1")[grid],
    norm=((x.astype("f8") - [1, 2, 3, 4]) / [0.5, 3, 7, 9]).astype("f4"), clip=np.clip(x, 5, 60),
    short=x[:, :2], long=np.pad(x, ((0, 0), (0, 2), (0, 0)), constant_values=-1.5))
tokens = [rng.integers(-5, 30000, i).tolist() for i in range(n)]
boxes = [rng.integers(0, 99, (i % 4, 4)).tolist() for i in range(n)]
with open("in.jsonl", "w") as f:
    for t, b in zip(tokens, boxes):
        print(json.dumps({"tokens": t, "boxes": b}), file=f)
fixed = np.zeros((n, 3, 4), "f4")
for i, b in enumerate(boxes):
    fixed[i, :len(b)] = np.array(b, "f4").reshape(-1, 4) / 2
np.savez("lists.npz", tokens=np.array([(t + [-100] * 5)[:5] for t in tokens]), boxes=fixed)
`

// Every operation on arrays gives what NumPy does, in both formats, and from the recipe.
func TestArrayOperations(t *testing.T) {
	h5test.Python(t)
	dir := t.TempDir()
	h5test.Run(t, "-c", makeArrays, dir)
	rawtest.Put(t, dir, "arrays.yaml", []byte(`
transforms:
- {op: Log1p, field: x}
- {op: Reshape, field: x, shape: [2, -1]}
- {op: Standardize, field: norm, mean: [1, 2, 3, 4], std: [0.5, 3, 7, 9], axis: -1}
- {op: Clip, field: clip, min: 5, max: 60}
- {op: OneHot, field: k, classes: 5}
- {op: OneHot, field: grid, classes: 3, dtype: uint8}
- {op: PadTruncate, field: short, length: 2}
- {op: PadTruncate, field: long, length: 5, value: -1.5}
`))
	rawtest.Put(t, dir, "lists.yaml", []byte(`
transforms:
- {op: PadTruncate, field: tokens, length: 5, value: -100}
- {op: Cast, field: boxes, dtype: float32}
- {op: Scale, field: boxes, factor: 0.5}
- {op: PadTruncate, field: boxes, length: 3}
`))
	check := []string{"../../../prepare/testdata/check_datasets.py"}
	for _, run := range []struct{ source, flags, name string }{
		{"in.npz", "", "arrays"},
		{"in.jsonl", "--fields tokens:int64[*],boxes:int64[*,4]", "lists"},
	} {
		in := filepath.Join(dir, run.source)
		for _, dest := range []string{"ds", "ds.h5"} {
			dest = filepath.Join(dir, run.name+"."+dest)
			c, err := parseFlags(t, strings.Join([]string{in, dest, run.flags, "--pipeline", filepath.Join(dir, run.name+".yaml")}, " "))
			require.NoError(t, err)
			mustRun(t, c)
			check = append(check, dest, filepath.Join(dir, run.name+".npz"))
		}
		first := rawtest.Manifest(t, filepath.Join(dir, run.name+".ds"))
		again := mustRun(t, fromRecipe(t, first.Recipe, in, filepath.Join(dir, run.name+".again")))
		if again.ID != first.ID {
			t.Errorf("%s: the recipe makes %s, not %s", run.name, again.ID, first.ID)
		}
	}
	h5test.Run(t, check...)
}

// A number that is not a class makes a bad sample.
func TestOneHotBadSample(t *testing.T) {
	c := plain(t, rawtest.Rows(t, 5)) // numbers 0, 1, 4, 9, 16
	c.Skip = true
	c.Images.Transforms = []byte(`[{"op":"Cast","field":"number","dtype":"int32"},{"op":"OneHot","field":"number","classes":5,"dtype":"uint8"}]`)
	s := mustRun(t, c)
	if got := rawtest.Payload(t, c.Dest, "number"); string(got) != "\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01" {
		t.Errorf("vectors %v", got)
	}
	want := "number: transform OneHot: element 0 is 9, which is not one of the classes 0 to 4"
	if len(s.Skipped) != 2 || skipKinds(s.SkippedKinds)[0] != "bad value" || s.Skipped[0].Reason != want {
		t.Errorf("skipped %+v %v", s.Skipped, s.SkippedKinds)
	}
}

// Vectors of named classes keep no names, so nothing can be appended to them.
func TestOneHotOfNamedClasses(t *testing.T) {
	c := plain(t, rawtest.Folder(t, 6))
	c.Images.Transforms = []byte(`[{"op":"Resize","field":"images","size":[8,8]},{"op":"OneHot","field":"labels","classes":2,"dtype":"uint8"}]`)
	mustRun(t, c)
	if f := rawtest.Manifest(t, c.Dest).Fields[1]; f.Classes != nil || f.Shape.String() != "(2,)" {
		t.Errorf("field %+v", f)
	}
	if got := rawtest.Payload(t, c.Dest, "labels"); string(got) != "\x01\x00\x01\x00\x01\x00\x00\x01\x00\x01\x00\x01" {
		t.Errorf("labels %v", got)
	}
	c.Append = true
	if _, err := prepare.Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "--append cannot match the classes by name") {
		t.Errorf("error %v", err)
	}
}
