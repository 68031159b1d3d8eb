package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/tensor"
)

// stripes writes n images of one of three classes, sorted by class as preprocess would:
// horizontal stripes, vertical ones, and squares, in noise and with any contrast and phase.
func stripes(t *testing.T, name string, n int, edit func(*store.Schema)) string {
	t.Helper()
	return splitStripes(t, name, n, nil, edit)
}

// splitStripes is stripes whose records go to the splits in turn.
func splitStripes(t *testing.T, name string, n int, splits []string, edit func(*store.Schema)) string {
	t.Helper()
	images, labels := store.NewField("images", tensor.Uint8, 3, side, side), store.NewField("labels", tensor.Int64)
	images.Layout = tensor.CHW
	labels.Classes = []string{"horizontal", "vertical", "squares"}
	schema := store.Schema{Fields: []store.Field{images, labels}}
	if edit != nil {
		edit(&schema)
	}
	path := filepath.Join(t.TempDir(), name)
	w, err := flat.Create(path, schema, flat.Options{Splits: splits})
	require.NoError(t, err)
	defer w.Close()
	r := rand.New(rand.NewPCG(uint64(n), 1))
	rec := store.NewRecord(schema)
	for i := range n {
		class := i * 3 / n
		paint(rec.Values[0], r, class, schema.Fields[0].Layout == tensor.HWC)
		binary.LittleEndian.PutUint64(rec.Values[1], uint64(class))
		if len(splits) > 0 {
			rec.Split = splits[i%len(splits)]
		}
		require.NoError(t, w.Append(rec))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
	return path
}

const side = 12

func paint(pixels []byte, r *rand.Rand, class int, hwc bool) {
	low, high := 60+r.IntN(40), 140+r.IntN(60)
	dx, dy := r.IntN(4), r.IntN(4)
	for y := range side {
		for x := range side {
			on := [3]bool{(y+dy)/2%2 == 0, (x+dx)/2%2 == 0, (y+dy)/2%2 == (x+dx)/2%2}[class]
			for c := range 3 {
				v := low
				if on {
					v = high
				}
				at := (c*side+y)*side + x
				if hwc {
					at = (y*side+x)*3 + c
				}
				pixels[at] = byte(v + r.IntN(41) - 20)
			}
		}
	}
}

func settings(data string) config {
	return config{
		data: data, images: "images", labels: "labels",
		holdout: 5, epochs: 3, batch: 32, rate: 0.005, seed: 1, augment: mild,
	}
}

// seconds matches the numbers that differ from run to run.
var seconds = regexp.MustCompile(`[0-9.]+ s\b|[0-9.]+ % of it`)

func train(t *testing.T, c config) string {
	t.Helper()
	var out strings.Builder
	if err := run(context.Background(), c, &out); err != nil {
		t.Fatal(err, out.String())
	}
	return seconds.ReplaceAllString(out.String(), "-")
}

func TestLearns(t *testing.T) {
	c := settings(stripes(t, "train", 600, nil))
	c.require = 0.9
	first := train(t, c)
	t.Log(first)
	if !strings.Contains(first, "of 120 images right") {
		t.Error("not every fifth of 600 records was held out")
	}
	if again := train(t, c); again != first {
		t.Errorf("the same seed gave another result:\n%s", again)
	}
}

func TestLearnsFromOtherLayouts(t *testing.T) {
	c := settings(stripes(t, "train", 600, func(s *store.Schema) {
		s.Fields[0].Layout = tensor.HWC
		s.Fields[0].Shape = tensor.Shape{side, side, 3}
		s.Fields[0].Normalization = &store.Normalization{Scale: 255, Mean: []float64{.5, .5, .5}, Std: []float64{.2, .2, .2}}
	}))
	c.test = stripes(t, "test", 90, func(s *store.Schema) {
		s.Fields[0].Layout = tensor.HWC
		s.Fields[0].Shape = tensor.Shape{side, side, 3}
	})
	c.require = 0.9
	if out := train(t, c); !strings.Contains(out, "of 90 images right") {
		t.Error("the test dataset was not the judge:\n", out)
	}
}

func TestLearnsFromSplit(t *testing.T) {
	c := settings(splitStripes(t, "both", 600, []string{"train", "test"}, nil))
	c.split, c.judge, c.require, c.epochs = "train", "test", 0.9, 5
	if out := train(t, c); !strings.Contains(out, "300 images of") || !strings.Contains(out, "of 300 images right") {
		t.Error("the splits were not taken:\n", out)
	}
	c.split, c.judge, c.test = "", "test", c.data
	if out := train(t, c); !strings.Contains(out, "600 images of") || !strings.Contains(out, "of 300 images right") {
		t.Error("the split of the other dataset was not the judge:\n", out)
	}
}

// Datasets that cannot be trained on are refused with a reason.
func TestRefuses(t *testing.T) {
	good := stripes(t, "good", 60, nil)
	for name, tc := range map[string]struct {
		change func(*config)
		want   string
	}{
		"no such split": {func(c *config) { c.split = "dev" }, `no split "dev"`},
		"no dataset":    {func(c *config) { c.data += "-not" }, "good-not"},
		"no such field": {func(c *config) { c.images = "pictures" }, `"pictures"`},
		"not labels":    {func(c *config) { c.labels = "images" }, "must be int64"},
		"not images":    {func(c *config) { c.images = "labels" }, "must be uint8 or float32"},
		"other classes": {func(c *config) {
			c.test = stripes(t, "other", 60, func(s *store.Schema) { s.Fields[1].Classes = []string{"a", "b", "c"} })
		}, "other classes"},
		"too few":      {func(c *config) { c.holdout = 61 }, "too few"},
		"not reached":  {func(c *config) { c.require, c.rate, c.epochs = 1, 1e-9, 1 }, "-require"},
		"unlike sizes": {func(c *config) { c.test = gray(t) }, "images are"},
	} {
		t.Run(name, func(t *testing.T) {
			c := settings(good)
			tc.change(&c)
			var out strings.Builder
			err := run(context.Background(), c, &out)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}

// gray writes a dataset whose images have no channel axis.
func gray(t *testing.T) string {
	return stripes(t, "gray", 60, func(s *store.Schema) {
		s.Fields[0] = store.NewField("images", tensor.Uint8, 3*side, side)
	})
}

func TestFlags(t *testing.T) {
	err := config{holdout: 1, epochs: 0, batch: 0, rate: 0}.validate([]string{"x"})
	for _, want := range []string{"-data", "-holdout", "-epochs", "-batch", "-rate", "arguments"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	for _, c := range []config{{data: "x", judge: "test"}, {data: "x", split: "test", judge: "test"}} {
		if err := c.validate(nil); err == nil || !strings.Contains(err.Error(), "-test-split") {
			t.Errorf("%+v: %v does not name -test-split", c, err)
		}
	}
	if err := settings("x").validate(nil); err != nil {
		t.Error(err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out strings.Builder
	if err := run(ctx, settings(stripes(t, "train", 60, nil)), &out); err == nil {
		t.Error("a cancelled training ended well")
	}
}
