package prepare

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
	"github.com/penstock/penstock/tensor"
)

// column returns the bytes of a field of a flat dataset, of all shards.
func columnBytes(t *testing.T, dest, field string) (all []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dest, field+"-?????.npy"))
	if err != nil || names == nil {
		t.Fatal(names, err)
	}
	m := rawtest.Manifest(t, dest)
	for i, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, data[layout.HeaderBytes:][:m.Shards[i].Count*int64(m.Fields[m.Schema().Index(field)].RecordBytes())]...)
	}
	return all
}

// splitMoments returns mean and deviation of x/255 of the images in a split of a flat dataset of
// bytes, by channel; "" is all records.
func splitMoments(t *testing.T, dest, split string) (mean, std []float64) {
	t.Helper()
	m, data := rawtest.Manifest(t, dest), columnBytes(t, dest, "images")
	size := m.Fields[0].RecordBytes()
	var n, sum, squares [3]float64
	for _, s := range m.Splits {
		if split != "" && s.Name != split {
			continue
		}
		for _, r := range s.Ranges {
			for i, x := range data[r[0]*int64(size) : r[1]*int64(size)] {
				ch := i % size / (size / 3)
				n[ch], sum[ch], squares[ch] = n[ch]+1, sum[ch]+float64(x)/255, squares[ch]+float64(x)/255*float64(x)/255
			}
		}
	}
	for ch := range n {
		mean = append(mean, sum[ch]/n[ch])
		std = append(std, math.Sqrt(squares[ch]/n[ch]-mean[ch]*mean[ch]))
	}
	return mean, std
}

func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-6 })
}

// With splits the statistics are those of the training records alone, whether --split or the source
// defines the splits, stored or applied, with strata and with duplicates; the recipe states this.
func TestNormalizeTrainingSplit(t *testing.T) {
	photos, folders := rawtest.Folder(t, 40), filepath.Join(t.TempDir(), "folders")
	rawtest.Put(t, photos, "dog/zz.png", rawtest.Picture(t, "a.png", 40, 30, 0)) // the content of cat/a.png
	for i := range 12 {
		name := fmt.Sprintf("%s/%s/%d.png", []string{"train", "val"}[i%2], []string{"cat", "dog"}[i/2%2], i)
		rawtest.Put(t, folders, name, rawtest.Picture(t, name, 30, 30, i))
	}
	for _, run := range []struct {
		source, ask, want string // values of NormalizeSplit, and of the recipe
		change            func(c *Config)
	}{
		{folders, "", "train", func(*Config) {}},
		{folders, "val", "val", func(*Config) {}},
		{folders, "all", "all", func(*Config) {}},
		{photos, "", "train", func(c *Config) { c.Split = []samples.Share{{Name: "val", Share: 0.4}, {Name: "train", Share: 0.6}} }},
		{photos, "", "fit", func(c *Config) { c.Split = []samples.Share{{Name: "fit", Share: 0.6}, {Name: "check", Share: 0.4}} }},
		{photos, "", "train", func(c *Config) {
			c.Split, c.Stratify.Wanted, c.Dedup = []samples.Share{{Name: "train", Share: 0.6}, {Name: "val", Share: 0.4}}, true, true
		}},
	} {
		c := config(t, run.source)
		run.change(&c)
		c.Images.Normalize, c.NormalizeSplit = normalizeOf(t, "dataset"), run.ask
		mustRun(t, c)
		split := strings.TrimSuffix(run.want, allRecords)
		mean, std := splitMoments(t, c.Dest, split)
		m := rawtest.Manifest(t, c.Dest)
		if n := m.Fields[0].Normalization; !near(n.Mean, mean) || !near(n.Std, std) {
			t.Errorf("%s of %s: noted %v %v, want %v %v", run.ask, run.source, n.Mean, n.Std, mean, std)
		}
		if got := m.Recipe.Options["normalize-split"]; got != run.want {
			t.Errorf("the recipe says normalize-split %q, want %q", got, run.want)
		}
		c.Images.DType, c.Dest = tensor.Float32, filepath.Join(filepath.Dir(c.Dest), "floats")
		mustRun(t, c)
		if n := rawtest.Manifest(t, c.Dest).Fields[0].Normalization; !near(n.Mean, mean) || !near(n.Std, std) {
			t.Errorf("%s of %s: applied %v %v, want %v %v", run.ask, run.source, n.Mean, n.Std, mean, std)
		}
		c.Resume = true
		if s := mustRun(t, c); !slices.Contains(s.Hints, completeHint) {
			t.Errorf("--resume over the finished dataset says %v", s.Hints)
		}
	}
}

// Arrays are standardized by the statistics of the training records too.
func TestNormalizeTrainingRows(t *testing.T) {
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("x,y\n")
	for i := range 60 {
		fmt.Fprintf(&rows, "%d.5,%d\n", i*i, i)
	}
	rawtest.Put(t, dir, "rows.csv", []byte(rows.String()))
	c := DefaultConfig()
	c.Source, c.Dest = filepath.Join(dir, "rows.csv"), filepath.Join(dir, "ds")
	c.Split, c.Images.Normalize = []samples.Share{{Name: "train", Share: 0.7}, {Name: "val", Share: 0.3}}, normalizeOf(t, "dataset")
	mustRun(t, c)
	m, data := rawtest.Manifest(t, c.Dest), columnBytes(t, c.Dest, "x")
	var x []float64
	for ; len(data) >= 4 && len(x) < int(m.Records); data = data[4:] {
		x = append(x, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
	}
	sum, squares, n := 0.0, 0.0, 0.0
	for _, r := range m.Splits[0].Ranges {
		for _, v := range x[r[0]:r[1]] {
			sum, squares, n = sum+v, squares+v*v, n+1
		}
	}
	if n == 0 || n == 60 || math.Abs(sum/n) > 1e-5 || math.Abs(squares/n-1) > 1e-5 {
		t.Errorf("%v training records of mean %v and mean square %v, want 0 and 1", n, sum/n, squares/n)
	}
}

func TestNormalizeSplitErrors(t *testing.T) {
	c := config(t, rawtest.Folder(t, 8))
	c.Images.Normalize, c.NormalizeSplit = normalizeOf(t, "dataset"), "train"
	if got := runError(t, c); !strings.Contains(got, "--normalize-split train: the dataset has no splits; --split makes them") {
		t.Error(got)
	}
	c.Split, c.NormalizeSplit = []samples.Share{{Name: "train", Share: 0.5}, {Name: "val", Share: 0.5}}, "trian"
	if got := runError(t, c); !strings.Contains(got, "there is no such split; did you mean \"train\"?") {
		t.Error(got)
	}
	c.Images.Normalize = normalizeOf(t, "imagenet")
	if got := runError(t, c); !strings.Contains(got, "--normalize-split trian: says what --normalize dataset is computed from") {
		t.Error(got)
	}
}

// The statistics of what is stored count deleted records, so that a dataset with some has no mean of its own.
func TestNormalizeWithDeletedRecords(t *testing.T) {
	c := config(t, rawtest.Folder(t, 8))
	mustRun(t, c)
	if _, err := edit.At(c.Dest).Delete(edit.Chosen{Words: []uint64{1}}, edit.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, split := range []string{"", allRecords} {
		_, _, err := SetNormalization(c.Dest, normalizeOf(t, "dataset"), split)
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "-flat --normalize dataset") {
			t.Errorf("%q: %v", split, err)
		}
	}
	if _, _, err := SetNormalization(c.Dest, normalizeOf(t, "imagenet"), ""); err != nil {
		t.Error(err)
	}
}
