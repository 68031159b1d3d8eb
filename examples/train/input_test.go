package main

import (
	"context"
	"math"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Without augmentation, every value must be (x/255 - mean) / std of its pixel and channel.
func TestNormalizes(t *testing.T) {
	mean, std := []float64{.4, .5, .6}, []float64{.2, .25, .3}
	d := openStripes(t, func(s *store.Schema) {
		s.Fields[0].Normalization = &store.Normalization{Scale: 255, Mean: mean, Std: std}
	})
	x := firstBatch(t, d, none, 0)
	view, err := d.Slice("images", 0, 8)
	require.NoError(t, err)
	pixels := tensor.As[uint8](view)
	for i := range 8 * 3 * side * side {
		image, c, at := i/(3*side*side), i/(side*side)%3, i%(side*side)
		want := (float64(pixels[i])/255 - mean[c]) / std[c]
		if got := x[(image*side*side+at)*3+c]; math.Abs(float64(got)-want) > 1e-6 {
			t.Fatalf("image %d, channel %d, pixel %d: %v, not %v", image, c, at, got, want)
		}
	}
}

// Images whose manifest asks for no normalization come out with mean 0 and deviation 1, by
// their own statistics.
func TestNormalizesByStatistics(t *testing.T) {
	x := firstBatch(t, openStripes(t, nil), none, 0)
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	mean := sum / float64(len(x))
	std := math.Sqrt(squares/float64(len(x)) - mean*mean)
	if math.Abs(mean) > 0.3 || math.Abs(std-1) > 0.3 {
		t.Errorf("mean %.2f, standard deviation %.2f", mean, std)
	}
}

// Augmentation is a function of seed, epoch and record, and makes another image of most.
func TestAugments(t *testing.T) {
	d := openStripes(t, nil)
	plain, a, again, later := firstBatch(t, d, none, 3), firstBatch(t, d, mild, 3), firstBatch(t, d, mild, 3), firstBatch(t, d, mild, 4)
	changed, moved := 0, 0
	for i := range 8 {
		from, to := i*3*side*side, (i+1)*3*side*side
		if !same(a[from:to], again[from:to]) {
			t.Errorf("image %d: the same epoch gave another image", i)
		}
		if !same(a[from:to], plain[from:to]) {
			changed++
		}
		if !same(a[from:to], later[from:to]) {
			moved++
		}
	}
	if changed == 0 || moved == 0 {
		t.Errorf("%d of 8 images are changed, %d of 8 from epoch to epoch", changed, moved)
	}
}

func same(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func openStripes(t *testing.T, edit func(*store.Schema)) *images {
	t.Helper()
	d, err := openImages(stripes(t, "d", 60, edit), "", settings(""))
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// firstBatch returns the first 8 images as the network gets them.
func firstBatch(t *testing.T, d *images, augment augmentation, epoch int) []float32 {
	t.Helper()
	ld, err := loader.New(d, loader.Options{BatchSize: 8})
	require.NoError(t, err)
	defer ld.Close()
	scale, bias := d.scaling()
	in := newInput(d, scale, bias, 8)
	in.augment, in.seed = augment, 7
	for b, err := range ld.Epoch(context.Background(), epoch) {
		require.NoError(t, err)
		return in.images(b, epoch)
	}
	t.Fatal("no batch")
	return nil
}
