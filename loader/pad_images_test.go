package loader_test

import (
	"bytes"
	"fmt"
	"image"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// sized returns options for scenes that become images of several sizes.
func sized(t testing.TB, batch, workers int) loader.Options {
	one, seven := 1.0, 7
	p := composed(t, transforms.RandomHorizontalFlip{P: &one},
		transforms.RandomShortestSize{MinSize: []int{15, 20, 30, 37}, Interpolation: "nearest"}, transforms.SanitizeBoundingBoxes{})
	return loader.Options{BatchSize: batch, Workers: workers, Seed: 3, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{
		"image": loader.PadImages{Images: loader.Images{Pipeline: p}, Multiple: 8, Fill: 9, MaskFill: &seven}}}
}

// sizedRecord is one of a batch, without what it was padded with.
type sizedRecord struct{ image, mask, boxes []byte }

// unpadded returns a plane of rows of h of w pixels of n bytes without what is right of and below w2 and h2, and whether that is
// value.
func unpadded(plane []byte, w, h, w2, h2, n int, value byte) (out []byte, filled bool) {
	filled = true
	for y := range h {
		row := plane[y*w*n : (y+1)*w*n]
		rest := row
		if y < h2 {
			out, rest = append(out, row[:w2*n]...), row[w2*n:]
		}
		filled = filled && len(bytes.Trim(rest, string(value))) == 0
	}
	return out, filled
}

// sizedRecords returns all records of an epoch by number.
func sizedRecords(t *testing.T, src loader.Source, opts loader.Options) []sizedRecord {
	t.Helper()
	ld, err := loader.New(src, opts)
	require.NoError(t, err)
	defer ld.Close()
	out := make([]sizedRecord, src.Len())
	shapes := map[string]bool{}
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		images, masks := b.Field("image"), b.Field("mask")
		h, w := images.Dim(1), images.Dim(2)
		shapes[fmt.Sprint(images.Shape()[1:])] = true
		if !slices.Equal(masks.Shape(), tensor.Shape{b.Len(), h, w}) || h%8 != 0 || w%8 != 0 {
			t.Fatalf("images of %v, masks of %v", images.Shape(), masks.Shape())
		}
		sizes, ends := tensor.As[int64](b.Field("image_sizes")), b.Offsets("boxes")
		most := [2]int{}
		for i, index := range b.Indices() {
			h2, w2 := int(sizes[2*i]), int(sizes[2*i+1])
			most = [2]int{max(most[0], h2), max(most[1], w2)}
			pixels, filled := unpadded(images.Slice(i, i+1).Bytes(), w, h, w2, h2, 3, 9)
			mask, also := unpadded(masks.Slice(i, i+1).Bytes(), w, h, w2, h2, 1, 7)
			if !filled || !also {
				t.Fatalf("record %d of %dx%d is not padded with the values", index, h2, w2)
			}
			for k, v := range mask {
				if pixels[3*k+2]/60 != v {
					t.Fatalf("record %d: the mask is not that of the image", index)
				}
			}
			out[index] = sizedRecord{pixels, mask, bytes.Clone(b.Field("boxes").Slice(int(ends[i]), int(ends[i+1])).Bytes())}
		}
		if h >= most[0]+8 || w >= most[1]+8 {
			t.Errorf("a batch of %dx%d, whose largest image is %v", h, w, most)
		}
	}
	if len(shapes) < 2 {
		t.Errorf("all batches are %v", shapes)
	}
	return out
}

// Batches of images of several sizes have the images that batches of one have, whatever the number of workers.
func TestPadImages(t *testing.T) {
	for _, files := range []bool{false, true} {
		src := scenes(t, 40, files)
		alone := sizedRecords(t, src, sized(t, 1, loader.Synchronous))
		for _, workers := range []int{loader.Synchronous, 3} {
			for i, r := range sizedRecords(t, src, sized(t, 6, workers)) {
				if w := alone[i]; !bytes.Equal(r.image, w.image) || !bytes.Equal(r.mask, w.mask) || !bytes.Equal(r.boxes, w.boxes) {
					t.Errorf("files %v, %d workers: record %d is not that of a batch of one", files, workers, i)
				}
			}
		}
	}
}

// Images without labels are padded, in the layout and the type that the pipeline makes.
func TestPadImagesAlone(t *testing.T) {
	src := scenes(t, 12, true)
	half := .5
	p := composed(t, transforms.RandomResize{MinSize: 10, MaxSize: 20}, transforms.ToTensor{})
	ld, err := loader.New(src, loader.Options{BatchSize: 12, Fields: []string{"image"}, Transforms: map[string]loader.Transform{
		"image": loader.PadImages{Images: loader.Images{Pipeline: p}, Fill: half}}})
	require.NoError(t, err)
	defer ld.Close()
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		v, sizes := b.Field("image"), tensor.As[int64](b.Field("image_sizes"))
		h, w := v.Dim(2), v.Dim(3)
		if v.DType() != tensor.Float32 || v.Dim(1) != 3 || h < 15 || h > 19 {
			t.Fatalf("images of %v%v", v.DType(), v.Shape())
		}
		for i := range b.Len() {
			record := tensor.As[float32](v.Slice(i, i+1))
			for k, x := range record {
				inside := k/w%h < int(sizes[2*i]) && k%w < int(sizes[2*i+1])
				if !inside && x != .5 {
					t.Fatalf("record %d has %v at %d", i, x, k)
				}
			}
		}
	}
}

func TestPadImagesMistakes(t *testing.T) {
	src := scenes(t, 4, true)
	with := func(change func(*loader.Options, *loader.PadImages)) loader.Options {
		o := sized(t, 2, 1)
		p := o.Transforms["image"].(loader.PadImages)
		change(&o, &p)
		o.Transforms["image"] = p
		return o
	}
	big := 256
	for _, c := range []struct {
		opts loader.Options
		want string
	}{
		{with(func(_ *loader.Options, p *loader.PadImages) { p.Fill = .5 }), "Pad with 0.5"},
		{with(func(_ *loader.Options, p *loader.PadImages) { p.MaskFill = &big }), `masks "mask": Pad with 256`},
		{with(func(_ *loader.Options, p *loader.PadImages) { p.Multiple = -1 }), "a multiple of -1 pixels"},
		{with(func(o *loader.Options, _ *loader.PadImages) { o.OnError = loader.Blank }), "OnError Blank has no length"},
		{with(func(o *loader.Options, _ *loader.PadImages) { o.Transforms["mask"] = loader.Pad{Length: 3} }), "take no other Transform"},
	} {
		ld, err := loader.New(src, c.opts)
		if err == nil {
			t.Fatalf("no error, where %q is wanted: %v", c.want, ld.Close())
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
	opts := sized(t, 2, 1)
	opts.Transforms["image"] = opts.Transforms["image"].(loader.PadImages).Images
	if _, err := loader.New(src, opts); err == nil || !strings.Contains(err.Error(), "PadImages") {
		t.Errorf("images of several sizes: %v", err)
	}
}

// A record that cannot be read gives its place to another one, also where images are padded.
func TestPadImagesBackfill(t *testing.T) {
	good := encoded(t, image.NewNRGBA(image.Rect(0, 0, 40, 30)))
	files, ends := append(bytes.Clone(good), 1, 2, 3), []int64{0, int64(len(good)), int64(len(good) + 3)}
	files, ends = append(files, good...), append(ends, int64(2*len(good)+3))
	src, err := combine.NewArrays(combine.Array{Name: "image", Values: tensor.From(files), Offsets: ends, Content: tensor.Image})
	require.NoError(t, err)
	opts := sized(t, 3, 2)
	opts.OnError = loader.Backfill
	opts.Transforms["image"] = loader.PadImages{Images: loader.Images{Pipeline: composed(t, transforms.RandomResize{MinSize: 9, MaxSize: 12})}}
	ld, err := loader.New(src, opts)
	require.NoError(t, err)
	defer ld.Close()
	for range 3 {
		for b, err := range ld.Epoch(t.Context(), 0) {
			require.NoError(t, err)
			if slices.Contains(b.Indices(), 1) || b.Field("image").Len() != 3 {
				t.Errorf("records %v of shape %v", b.Indices(), b.Field("image").Shape())
			}
		}
	}
}
