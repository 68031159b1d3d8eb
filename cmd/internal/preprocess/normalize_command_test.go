package preprocess

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/tensor"
)

// runNormalize runs the command normalize and returns what it printed.
func runNormalize(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := normalizeCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

// The command records the same as preprocess --normalize: fields and id are the same, no
// file but the manifest changes, and records can be appended.
func TestNormalizeAfterwards(t *testing.T) {
	photos := rawtest.Folder(t, 24)
	for _, run := range []struct {
		figures, split string
		shares         []prepare.Share
	}{
		{"imagenet", "", nil},
		{"0.5/0.25", "", nil},
		{"dataset", "", nil},
		{"dataset", "", []prepare.Share{{Name: "val", Share: 0.4}, {Name: "train", Share: 0.6}}},
		{"dataset", "val", []prepare.Share{{Name: "val", Share: 0.4}, {Name: "train", Share: 0.6}}},
		{"dataset", "all", []prepare.Share{{Name: "val", Share: 0.4}, {Name: "train", Share: 0.6}}},
	} {
		c := config(t, photos)
		c.Split = run.shares
		mustRun(t, c)
		plain, before := c.Dest, rawtest.Manifest(t, c.Dest)
		was, err := os.Stat(filepath.Join(plain, "images-00000.npy"))
		require.NoError(t, err)
		c.Dest, c.Images.Normalize, c.NormalizeSplit = filepath.Join(filepath.Dir(plain), "asked"), normalizeOf(t, run.figures), run.split
		mustRun(t, c)
		asked := rawtest.Manifest(t, c.Dest)

		args := []string{plain, run.figures}
		if run.split != "" {
			args = append(args, "--split", run.split)
		}
		for range 2 { // a second time changes only the generation
			out, err := runNormalize(t, args...)
			require.NoError(t, err)
			if !strings.Contains(out, "images: mean [") || !strings.Contains(out, "id "+asked.ID) {
				t.Errorf("%v printed %q", run, out)
			}
		}
		got := rawtest.Manifest(t, plain)
		if got.ID != asked.ID || got.ID == before.ID || got.Generation != before.Generation+2 || !reflect.DeepEqual(got.Fields, asked.Fields) {
			t.Errorf("%v: noted %+v (id %s, generation %d), want %+v (id %s)", run, got.Fields[0].Normalization, got.ID, got.Generation, asked.Fields[0].Normalization, asked.ID)
		}
		is, err := os.Stat(filepath.Join(plain, "images-00000.npy"))
		if err != nil || !os.SameFile(was, is) || was.ModTime() != is.ModTime() {
			t.Errorf("%v: the records were rewritten, %v", run, err)
		}
		ds, err := store.Open(plain, store.OpenOptions{})
		require.NoError(t, err)
		if v, err := verify.Dataset(t.Context(), ds, verify.Options{}); err != nil {
			t.Errorf("%v: %+v, %v", run, v, err)
		}
		c.Dest, c.Append, c.Images.Normalize, c.NormalizeSplit = plain, true, prepare.Normalize{Name: "none"}, ""
		mustRun(t, c)
		if more := rawtest.Manifest(t, plain); more.Records != 2*before.Records || !reflect.DeepEqual(more.Fields, asked.Fields) {
			t.Errorf("%v: appended to: %d records of %+v", run, more.Records, more.Fields)
		}
	}
}

func TestNormalizeAfterwardsRefuses(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	mustRun(t, c)
	floats := c
	floats.Dest, floats.Images.DType, floats.Images.Normalize = filepath.Join(filepath.Dir(c.Dest), "floats"), tensor.Float32, normalizeOf(t, "imagenet")
	mustRun(t, floats)
	text, err := os.ReadFile(filepath.Join(c.Dest, layout.ManifestName))
	require.NoError(t, err)
	busy, err := write.OpenStage(c.Dest, write.StageOptions{Append: true})
	require.NoError(t, err)
	if _, err := runNormalize(t, c.Dest, "imagenet"); err == nil || !strings.Contains(err.Error(), "another process is building it") {
		t.Errorf("while it is appended to: %v", err)
	}
	require.NoError(t, busy.Abort())
	h5 := c
	h5.Dest = filepath.Join(filepath.Dir(c.Dest), "h5.h5")
	mustRun(t, h5)
	zarr := c
	zarr.Dest = filepath.Join(filepath.Dir(c.Dest), "zarr.zarr")
	mustRun(t, zarr)
	file := filepath.Join(t.TempDir(), "x.h5")
	rawtest.Put(t, filepath.Dir(file), "x.h5", []byte("x"))
	for want, args := range map[string][]string{
		"needs DATASET and STATISTICS":                                 {c.Dest},
		"STATISTICS: none leaves nothing to store":                     {c.Dest, "none"},
		"STATISTICS: must be one of none":                              {c.Dest, "vgg"},
		"applied when they are written":                                {c.Dest, "dataset:x@0"},
		"which is not given":                                           {c.Dest, "imagenet", "--split", "train"},
		"preprocess s3://lab/ds s3://lab/ds-flat --normalize imagenet": {"s3://lab/ds", "imagenet"},
		`there is no such split`:                                       {c.Dest, "dataset", "--split", "train"},
		"normalization of an HDF5 file":                                {h5.Dest, "imagenet"},
		"normalization of Zarr":                                        {zarr.Dest, "imagenet"},
		"neither a folder nor an HDF5 file":                            {file, "imagenet"},
		"no uint8 images whose normalization":                          {floats.Dest, "imagenet"},
		"no such file":                                                 {c.Dest + "x", "imagenet"},
	} {
		if _, err := runNormalize(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", args, err, want)
		}
	}
	if now, err := os.ReadFile(filepath.Join(c.Dest, layout.ManifestName)); err != nil || !bytes.Equal(now, text) {
		t.Errorf("a refused command changed the manifest, %v", err)
	}
	if ds, err := store.Open(zarr.Dest, store.OpenOptions{}); err != nil || ds.Manifest.Generation != 1 {
		t.Errorf("a refused command left Zarr that does not open: %v", err)
	}
}
