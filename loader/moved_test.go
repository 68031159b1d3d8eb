package loader_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
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

// sceneSize is that of the images of scenes.
const sceneW, sceneH = 40, 30

// scene is a record: an image whose pixels are their column, row and number, and boxes of the columns and rows in which
// a mask has the same numbers.
type scene struct {
	boxes  []float32 // of one to three objects, which do not overlap
	pixels []byte    // HWC
	mask   []byte    // 1 + the number of an object, 0 elsewhere
}

func newScene(n int) scene {
	r := rand.New(rand.NewPCG(uint64(n), 3))
	s := scene{pixels: make([]byte, sceneW*sceneH*3), mask: make([]byte, sceneW*sceneH)}
	for k := range n % 4 {
		x, y := 13*k+r.IntN(6), r.IntN(15)
		w, h := 2+r.IntN(6), 2+r.IntN(14)
		s.boxes = append(s.boxes, float32(x), float32(y), float32(x+w), float32(y+h))
		for v := y; v < y+h; v++ {
			for u := x; u < x+w && u < sceneW; u++ {
				s.mask[v*sceneW+u] = byte(k + 1)
			}
		}
	}
	for i, v := range s.mask {
		s.pixels[3*i], s.pixels[3*i+1], s.pixels[3*i+2] = byte(i%sceneW*6), byte(i/sceneW*8), v*60
	}
	return s
}

// encoded returns pixels, or a mask, as a PNG file.
func encoded(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// scenes returns a Source of n of them, of pixels or of files.
func scenes(t testing.TB, n int, files bool) *combine.Arrays {
	t.Helper()
	var pixels, masks []byte
	var boxes, points []float32
	var labels []int64
	ends := func() []int64 { return []int64{0} }
	imageEnds, maskEnds, boxEnds := ends(), ends(), ends()
	for i := range n {
		s := newScene(i)
		if files {
			rgb := image.NewNRGBA(image.Rect(0, 0, sceneW, sceneH))
			ids := image.NewPaletted(rgb.Rect, color.Palette{color.Gray{9}, color.Gray{7}, color.Gray{5}, color.Gray{3}})
			for k, v := range s.mask {
				copy(rgb.Pix[4*k:], s.pixels[3*k:3*k+3])
				rgb.Pix[4*k+3], ids.Pix[k] = 255, v
			}
			pixels, masks = append(pixels, encoded(t, rgb)...), append(masks, encoded(t, ids)...)
			imageEnds, maskEnds = append(imageEnds, int64(len(pixels))), append(maskEnds, int64(len(masks)))
		} else {
			pixels, masks = append(pixels, s.pixels...), append(masks, s.mask...)
		}
		boxes = append(boxes, s.boxes...)
		for k := range len(s.boxes) / 4 {
			b := s.boxes[4*k:]
			points, labels = append(points, b[0], b[1], 2, b[2], b[3], 0), append(labels, int64(10*i+k))
		}
		boxEnds = append(boxEnds, int64(len(boxes)/4))
	}
	image := combine.Array{Name: "image", Values: tensor.From(pixels), Offsets: imageEnds, Content: tensor.Image}
	mask := combine.Array{Name: "mask", Values: tensor.From(masks), Offsets: maskEnds, Content: tensor.Mask}
	if !files {
		image = combine.Array{Name: "image", Values: tensor.From(pixels, sceneH, sceneW, 3), Layout: tensor.HWC}
		mask = combine.Array{Name: "mask", Values: tensor.From(masks, sceneH, sceneW), Content: tensor.Mask}
	}
	src, err := combine.NewArrays(image, mask,
		combine.Array{Name: "boxes", Values: tensor.From(boxes, 4), Offsets: boxEnds, Content: tensor.Boxes, Instances: "objects"},
		combine.Array{Name: "points", Values: tensor.From(points, 2, 3), Offsets: boxEnds, Content: tensor.Keypoints, Instances: "objects"},
		combine.Array{Name: "labels", Values: tensor.From(labels), Offsets: boxEnds, Instances: "objects"})
	require.NoError(t, err)
	return src
}

func composed(t testing.TB, ts ...transforms.Transform) *transforms.Pipeline {
	t.Helper()
	p, err := transforms.Compose(ts...)
	require.NoError(t, err)
	return p
}

// augment is a pipeline for training detection, without colors between those of pixels.
func augment(t testing.TB) *transforms.Pipeline {
	return composed(t,
		transforms.ColorJitter{Hue: []float64{0}}, // which changes nothing, and draws
		transforms.RandomIoUCrop{}, transforms.RandomHorizontalFlip{},
		transforms.RandomResizedCrop{Size: []int{24, 32}, Scale: []float64{.3, 1}, Interpolation: "nearest"},
		transforms.SanitizeBoundingBoxes{})
}

// Masks, boxes, points and labels go where the pixels of their image go, for files and pixels, any number of workers, and any
// order of the fields.
func TestLabelsMove(t *testing.T) {
	const n = 64
	for _, files := range []bool{false, true} {
		src := scenes(t, n, files)
		var first []byte
		for _, workers := range []int{loader.Synchronous, 1, 3} {
			opts := loader.Options{BatchSize: 8, Workers: workers, Seed: 5, Sampler: sampler.Shuffle{}, Transforms: map[string]loader.Transform{"image": loader.Images{Pipeline: augment(t)}}}
			if workers == 3 {
				opts.Fields = []string{"labels", "points", "boxes", "mask", "image"}
			}
			ld, err := loader.New(src, opts)
			require.NoError(t, err)
			var got []byte
			left := 0
			for b, err := range ld.Epoch(t.Context(), 0) {
				require.NoError(t, err)
				left += checkScenes(t, b)
				for _, name := range []string{"image", "mask", "boxes", "points", "labels"} {
					got = append(got, b.Field(name).Bytes()...)
				}
			}
			require.NoError(t, ld.Close())
			if first == nil {
				first = got
			}
			if !bytes.Equal(got, first) {
				t.Errorf("files %v, %d workers: other batches", files, workers)
			}
			if left < n/3 || left > n*3/2-10 {
				t.Errorf("files %v: %d boxes are left", files, left)
			}
		}
	}
}

// checkScenes compares all labels of a batch with the pixels, and returns how many boxes there are.
func checkScenes(t *testing.T, b loader.Batch) int {
	t.Helper()
	pixels, mask := b.Field("image"), tensor.As[uint8](b.Field("mask"))
	h, w := pixels.Dim(1), pixels.Dim(2)
	if m := b.Field("mask"); m.Rank() != 3 || m.Dim(1) != h || m.Dim(2) != w {
		t.Fatalf("masks of shape %v for images of %v", m.Shape(), pixels.Shape())
	}
	boxes, points, labels := tensor.As[float32](b.Field("boxes")), tensor.As[float32](b.Field("points")), tensor.As[int64](b.Field("labels"))
	ends := b.Offsets("boxes")
	for _, name := range []string{"points", "labels"} {
		if !slices.Equal(b.Offsets(name), ends) {
			t.Fatalf("%s has rows %v, and boxes %v", name, b.Offsets(name), ends)
		}
	}
	for i, index := range b.Indices() {
		scene := newScene(index)
		at := func(x, y int) []byte { return pixels.Bytes()[((i*h+y)*w+x)*3:][:3] }
		wrong := 0
		for y := range h {
			for x := range w {
				if px := at(x, y); mask[(i*h+y)*w+x] != px[2]/60 {
					wrong++
				}
			}
		}
		if wrong > w+h { // where a place is between two pixels, Pillow and torch may take another one
			t.Fatalf("record %d: %d numbers of the mask are not those of the image", index, wrong)
		}
		for k := ends[i]; k < ends[i+1]; k++ {
			object := int(labels[k] - int64(10*index))
			if object < 0 || 4*object >= len(scene.boxes) {
				t.Fatalf("record %d has a label of %d", index, labels[k])
			}
			box := boxes[4*k : 4*k+4]
			for y := range h {
				for x := range w {
					inside := float32(x) >= box[0]-1 && float32(x+1) <= box[2]+1 && float32(y) >= box[1]-1 && float32(y+1) <= box[3]+1
					deep := float32(x) >= box[0]+1 && float32(x+1) <= box[2]-1 && float32(y) >= box[1]+1 && float32(y+1) <= box[3]-1
					if is := at(x, y)[2] == byte(60*(object+1)); is && !inside || deep && !is {
						t.Fatalf("record %d: box %v of object %d, and %d,%d is %v", index, box, object, x, y, at(x, y))
					}
				}
			}
			p := points[6*k : 6*k+6]
			if o := scene.boxes[4*object:]; p[3] != o[2] || p[4] != o[3] || p[5] != 0 {
				t.Fatalf("record %d: the point that is not labeled is %v, and was %v", index, p[3:], o[2:4])
			}
			// The visible point is a corner of the box, or outside of the image.
			x, y := float64(p[0]), float64(p[1])
			near := func(v float64, a, b float32) bool {
				return math.Abs(v-float64(a)) < .01 || math.Abs(v-float64(b)) < .01
			}
			if x > .01 && y > .01 && x < float64(w)-.01 && y < float64(h)-.01 && !(near(x, box[0], box[2]) && near(y, box[1], box[3])) {
				t.Fatalf("record %d: the point %v is not a corner of %v in %dx%d", index, p[:2], box, w, h)
			}
		}
	}
	return int(ends[len(b.Indices())])
}

// A Transform of a field that moves comes after that.
func TestOwnTransformOfLabels(t *testing.T) {
	src := scenes(t, 8, true)
	flip := composed(t, transforms.HorizontalFlip{}, transforms.CenterCrop{Size: []int{30, 40}})
	ld, err := loader.New(src, loader.Options{BatchSize: 8, Workers: loader.Synchronous, Transforms: map[string]loader.Transform{
		"image": loader.Images{Pipeline: flip}, "mask": loader.Masks{DType: tensor.Int64}, "boxes": loader.Pad{Length: 5, Value: -1},
	}})
	require.NoError(t, err)
	defer ld.Close()
	for b, err := range ld.Epoch(t.Context(), 0) {
		require.NoError(t, err)
		boxes, masks := tensor.As[float32](b.Field("boxes")), tensor.As[int64](b.Field("mask"))
		for i := range b.Len() {
			s := newScene(i)
			for k := range 5 {
				want := []float32{-1, -1, -1, -1}
				if 4*k < len(s.boxes) {
					o := s.boxes[4*k:]
					want = []float32{sceneW - o[2], o[1], sceneW - o[0], o[3]}
				}
				if got := boxes[20*i+4*k:][:4]; !slices.Equal(got, want) {
					t.Errorf("record %d, box %d: %v, want %v", i, k, got, want)
				}
			}
			for k, v := range s.mask {
				if got := masks[i*sceneW*sceneH+k/sceneW*sceneW+sceneW-1-k%sceneW]; got != int64(v) {
					t.Fatalf("record %d: %d, want %d", i, got, v)
				}
			}
		}
	}
}

// A field that cannot move, or is not declared, is an error that says how to continue.
func TestLabelsAsk(t *testing.T) {
	flip, clean := composed(t, transforms.HorizontalFlip{}), composed(t, transforms.SanitizeBoundingBoxes{})
	pixels := combine.Array{Name: "image", Values: tensor.From(make([]byte, 3*2*60), 4, 5, 3), Layout: tensor.HWC}
	boxes := combine.Array{Name: "boxes", Values: tensor.From(make([]float32, 8), 4), Offsets: []int64{0, 1, 2}}
	labels := combine.Array{Name: "labels", Values: tensor.From(make([]int64, 2)), Offsets: []int64{0, 1, 2}}
	pixels.Values = tensor.From(make([]byte, 2*60), 4, 5, 3)
	with := func(a combine.Array, content string) combine.Array {
		a.Content = content
		return a
	}
	other := pixels
	other.Name = "other"
	for _, c := range []struct {
		fields   []combine.Array
		pipeline *transforms.Pipeline
		more     map[string]loader.Transform
		contents map[string]string
		want     string
	}{
		{fields: []combine.Array{pixels, boxes}, pipeline: flip, want: `"boxes" (float32[*,4]) may be boxes or points in it, which would stay where they are; if so, set Contents["boxes"] to "boxes"`},
		{fields: []combine.Array{pixels, boxes}, pipeline: flip, contents: map[string]string{"boxes": tensor.Boxes}},
		{fields: []combine.Array{pixels, boxes}, pipeline: flip, contents: map[string]string{"boxes": "box"}, want: `Contents: field "boxes": "box" is none of mask, boxes, keypoints, hwc, chw, independent`},
		{fields: []combine.Array{pixels, boxes}, pipeline: flip, contents: map[string]string{"image": tensor.Boxes}, want: `content boxes needs float32`},
		{fields: []combine.Array{pixels, boxes}, pipeline: flip, contents: map[string]string{"box": tensor.Boxes}, want: `Contents names the field "box", which batches do not have`},
		{fields: []combine.Array{pixels, with(boxes, tensor.Boxes), labels}, pipeline: clean, want: `SanitizeBoundingBoxes removes rows of the field "boxes", and the field "labels" (int64[*]) may be of the same instances`},
		{fields: []combine.Array{pixels, with(boxes, tensor.Boxes), labels}, pipeline: clean, contents: map[string]string{"labels": loader.Independent}},
		{fields: []combine.Array{pixels, labels}, pipeline: clean, want: `SanitizeBoundingBoxes removes boxes on the field "image", and there are none`},
		{fields: []combine.Array{pixels, labels}, pipeline: composed(t, transforms.RandomIoUCrop{}), want: `RandomIoUCrop chooses a part of the field "image" by boxes on it, and there are none`},
		{fields: []combine.Array{pixels, other, with(boxes, tensor.Boxes)}, pipeline: flip, want: `the field "boxes" (boxes) lies on one of the images image, other; name it`},
		{fields: []combine.Array{pixels, boxes}, more: map[string]loader.Transform{"boxes": loader.Masks{}}, want: `masks that are files are decoded with the image that they lie on`},
	} {
		src, err := combine.NewArrays(c.fields...)
		require.NoError(t, err)
		opts := loader.Options{BatchSize: 2, Contents: c.contents, Transforms: c.more}
		if c.pipeline != nil {
			opts.Transforms = map[string]loader.Transform{"image": loader.Images{Pipeline: c.pipeline}}
		}
		ld, err := loader.New(src, opts)
		if err == nil {
			err = ld.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

var hostileBoxes = flag.Int("hostile.boxes", 1000, "records with odd boxes that TestHostileBoxes moves")

// Boxes that are none are an error of their record, or are removed by SanitizeBoundingBoxes; nothing crashes.
func TestHostileBoxes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	odd := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32, 0, -1, 5, 1e9, 1e-40}
	n := *hostileBoxes
	var boxes []float32
	ends := []int64{0}
	valid := make([]bool, n)
	for i := range n {
		valid[i] = true
		for range r.IntN(5) {
			b := make([]float32, 4)
			for k := range b {
				b[k] = float32(k/2*4) + r.Float32()*4.5
				if r.IntN(20) == 0 {
					b[k] = odd[r.IntN(len(odd))]
				}
			}
			valid[i] = valid[i] && transforms.CheckBoxes(b) == nil
			boxes = append(boxes, b...)
		}
		ends = append(ends, int64(len(boxes)/4))
	}
	src, err := combine.NewArrays(
		combine.Array{Name: "image", Values: tensor.From(make([]byte, n*8*9*3), 8, 9, 3), Layout: tensor.HWC},
		combine.Array{Name: "boxes", Values: tensor.From(boxes, 4), Offsets: ends, Content: tensor.Boxes})
	require.NoError(t, err)
	moves := []transforms.Transform{
		transforms.RandomIoUCrop{}, transforms.RandomZoomOut{Range: []float64{1, 2}}, transforms.RandomRotation{Degrees: []float64{90}}, transforms.RandomPerspective{},
		transforms.RandomResizedCrop{Size: []int{10}}, transforms.ElasticTransform{Sigma: []float64{.5}},
	}
	for _, sanitizes := range []bool{false, true} {
		ts := moves
		if sanitizes {
			ts = append(slices.Clone(moves), transforms.SanitizeBoundingBoxes{})
		}
		failed := 0
		opts := loader.Options{BatchSize: 10, Workers: 1, Transforms: map[string]loader.Transform{"image": loader.Images{Pipeline: composed(t, ts...)}}, OnError: loader.Backfill,
			Report: func(e *loader.Error) {
				if failed++; valid[e.Record] || !strings.Contains(e.Err.Error(), "boxes: box ") {
					t.Errorf("record %d: %v", e.Record, e)
				}
			}}
		ld, err := loader.New(src, opts)
		require.NoError(t, err)
		for b, err := range ld.Epoch(context.Background(), 0) {
			require.NoError(t, err)
			if i := slices.IndexFunc(tensor.As[float32](b.Field("boxes")), func(v float32) bool { return math.IsNaN(float64(v)) || v < 0 || v > 10 }); i >= 0 {
				t.Fatalf("sanitizes %v: %v", sanitizes, tensor.As[float32](b.Field("boxes"))[i/4*4:][:4])
			}
		}
		require.NoError(t, ld.Close())
		want := 0
		for _, v := range valid {
			if !v {
				want++
			}
		}
		if sanitizes {
			want = 0
		}
		if failed != want {
			t.Errorf("sanitizes %v: %d records failed, want %d of %d", sanitizes, failed, want, n)
		}
	}
}

// A mask that does not fit its image fails its record.
func TestMaskOfAnotherSize(t *testing.T) {
	gray := func(w, h int, v uint16) []byte {
		m := image.NewGray16(image.Rect(0, 0, w, h))
		for i := range w * h {
			m.SetGray16(i%w, i/w, color.Gray16{v})
		}
		return encoded(t, m)
	}
	for _, c := range []struct {
		mask []byte
		as   tensor.DType
		want string
	}{
		{gray(5, 4, 7), tensor.Uint8, ""},
		{gray(5, 4, 700), tensor.Uint8, "the mask has the number 700, which uint8 does not hold; take a larger type"},
		{gray(5, 4, 700), tensor.Int32, ""},
		{gray(4, 5, 7), tensor.Uint8, "the mask is 4x5 pixels and its image 5x4"},
		{encoded(t, image.NewNRGBA(image.Rect(0, 0, 5, 4))), tensor.Uint8, "has colors (rgba)"},
		{[]byte("none"), tensor.Uint8, "not an image"},
	} {
		src, err := combine.NewArrays(combine.Array{Name: "image", Values: tensor.From(make([]byte, 60), 4, 5, 3), Layout: tensor.HWC},
			combine.Array{Name: "mask", Values: tensor.From(c.mask), Offsets: []int64{0, int64(len(c.mask))}, Content: tensor.Mask})
		require.NoError(t, err)
		ld, err := loader.New(src, loader.Options{BatchSize: 1, Transforms: map[string]loader.Transform{
			"image": loader.Images{Pipeline: composed(t, transforms.ToTensor{})}, "mask": loader.Masks{DType: c.as}}})
		require.NoError(t, err)
		for b, e := range ld.Epoch(t.Context(), 0) {
			if err = e; err == nil && c.want == "" && b.Field("mask").Bytes()[0] != byte(map[bool]int{true: 7, false: 700 & 255}[c.as == tensor.Uint8]) {
				t.Errorf("%v", b.Field("mask").Bytes())
			}
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(fmt.Sprint(err), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
		ld.Close()
	}
}
