package preview

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

func preview(t *testing.T, path string, opts Options) *Sheet {
	t.Helper()
	s, err := Draw(context.Background(), path, opts)
	require.NoError(t, err)
	return s
}

func TestPreviewSpreadsOverClasses(t *testing.T) {
	path := datasettest.Animals(t)
	s := preview(t, path, Options{Count: 64, Even: true, Seed: 1})
	if len(s.Records) != 63 || s.Columns != 7 {
		t.Fatalf("%d records in %d columns", len(s.Records), s.Columns)
	}
	for i, r := range s.Records {
		if want := []string{"cat", "dog", "owl"}[i/21]; s.Labels[i] != want || r%3 != i/21 {
			t.Errorf("place %d: record %d, %q; want a %s", i, r, s.Labels[i], want)
		}
	}
	if again := preview(t, path, Options{Count: 64, Even: true, Seed: 1}); !slices.Equal(again.Records, s.Records) || !bytes.Equal(again.Picture.Pix, s.Picture.Pix) {
		t.Error("the same seed gives another sheet")
	}
	if other := preview(t, path, Options{Count: 64, Even: true, Seed: 2}); slices.Equal(other.Records, s.Records) {
		t.Error("another seed gives the same records")
	}
}

// Image files are decoded and keep their aspect; one that cannot be decoded leaves a black frame.
func TestPreviewOfImageFiles(t *testing.T) {
	s := preview(t, datasettest.Photos(t, 3), Options{Count: 3})
	if len(s.Records) != 3 || s.Values != "decoded" {
		t.Fatalf("%+v", s)
	}
	d := &drawing{columns: 3, head: margin + titleLine + textLine + headGap}
	d.cell.X = largest + columnGap
	for i, want := range []color.RGBA{{255, 255, 255, 255}, {255, 255, 255, 255}, {0, 0, 0, 0}} {
		at := d.corner(i).Add(image.Pt(largest/2, largest/2))
		if got := s.Picture.RGBAAt(at.X, at.Y); got != want {
			t.Errorf("the middle of picture %d is %v, want %v", i, got, want)
		}
		if got := s.Picture.RGBAAt(at.X, d.corner(i).Y+5); i < 2 && got != paper { // 10 x 6 pixels do not fill a square
			t.Errorf("above picture %d is %v", i, got)
		}
	}
}

func TestPreviewFirst(t *testing.T) {
	s := preview(t, datasettest.Animals(t), Options{Count: 5, First: true})
	if !slices.Equal(s.Records, []int{0, 1, 2, 3, 4}) || s.Columns != 5 || s.Labels[4] != "dog" {
		t.Errorf("%v %v", s.Records, s.Labels)
	}
}

// Names of the source's files are captions, cut to the width of their cell.
func TestPreviewNamesFiles(t *testing.T) {
	schema := datasettest.SchemaOf(tensor.Uint8, tensor.HWC, "a")
	names := store.NewRagged(layout.SourceNameField, tensor.Uint8)
	names.Content = tensor.SourceName
	named := schema
	named.Fields = append(slices.Clone(schema.Fields), names)
	path := datasettest.Build(t, named, 2, store.Info{}, func(i int, values [][]byte) {
		values[2] = append(values[2][:0], []string{"a/1.png", "a/" + strings.Repeat("long", 30) + ".png"}[i]...)
	})
	s := preview(t, path, Options{Count: 2, First: true})
	if len(s.Sources) != 2 || s.Sources[0] != "a/1.png" {
		t.Errorf("%q", s.Sources)
	}
	bare := preview(t, datasettest.Build(t, schema, 2, store.Info{}, func(int, [][]byte) {}), Options{Count: 2, First: true})
	if s.Width != bare.Width || bytes.Equal(s.Picture.Pix, bare.Picture.Pix) {
		t.Errorf("%d pixels wide, not %d, or nothing more is drawn", s.Width, bare.Width)
	}
}

func TestPreviewOfFewRecords(t *testing.T) {
	path := datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.HWC, "a", "b"), 3, store.Info{}, func(int, [][]byte) {})
	if s := preview(t, path, Options{Count: 64}); len(s.Records) != 3 {
		t.Errorf("%v", s.Records)
	}
}

// Labels without names are numbers, and their rows are kept apart, too.
func TestPreviewOfNumberedClasses(t *testing.T) {
	path := datasettest.Build(t, datasettest.SchemaOf(tensor.Uint8, tensor.CHW), 60, store.Info{}, func(i int, v [][]byte) { v[1][0] = byte(i % 4) })
	s := preview(t, path, Options{Count: 20})
	if s.Columns != 5 || s.Labels[0] != "labels 0" || s.Labels[4] != "labels 0" || s.Labels[5] != "labels 1" {
		t.Errorf("%d columns, %q", s.Columns, s.Labels)
	}
}

// Samples are distinct, and no class gets two before every class that has more got one.
func TestSpreadIsEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		labels := make([]int64, 1+rng.IntN(300))
		for i := range labels {
			labels[i] = int64(rng.IntN(1 + rng.IntN(20)))
		}
		classes := byLabel(labels)
		count := rng.IntN(len(labels) + 1)
		got := spread(rng, classes, count)
		seen, each := make(map[int]bool), make(map[int64]int)
		for _, r := range got {
			seen[r] = true
			each[labels[r]]++
		}
		if len(got) != count || len(seen) != count {
			t.Fatalf("%d of %d records, %d distinct", len(got), count, len(seen))
		}
		most := 0
		for _, n := range each {
			most = max(most, n)
		}
		for _, list := range classes {
			if n := each[labels[list[0]]]; n < min(len(list), most-1) {
				t.Errorf("%d of the %d records of a class, %d of another", n, len(list), most)
			}
		}
	}
}

// gradient is the pixel of a test image: channel c at (x, y).
func gradient(c, y, x int) byte { return byte(80*c + 20*y + x) }

// encode writes values in the type of a field.
func encode(t *testing.T, dtype tensor.DType, values []float64) []byte {
	t.Helper()
	var out []byte
	for _, v := range values {
		switch dtype {
		case tensor.Uint8:
			out = append(out, byte(v))
		case tensor.Uint16:
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		case tensor.Int32:
			out = binary.LittleEndian.AppendUint32(out, uint32(int32(v)))
		case tensor.Float16:
			out = binary.LittleEndian.AppendUint16(out, uint16(tensor.HalfOf(float32(v))))
		case tensor.BFloat16:
			out = binary.LittleEndian.AppendUint16(out, uint16(tensor.BrainOf(float32(v))))
		case tensor.Float32:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		case tensor.Float64:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		default:
			t.Fatalf("no values of %v", dtype)
		}
	}
	return out
}

// record returns the gradient in an order of axes, each value passed through f.
func record(layout string, f func(v float64, c int) float64) []float64 {
	out := make([]float64, 3*8*8)
	for c := range 3 {
		for y := range 8 {
			for x := range 8 {
				at := c*64 + y*8 + x
				if layout == tensor.HWC {
					at = y*24 + x*3 + c
				}
				out[at] = f(float64(gradient(c, y, x)), c)
			}
		}
	}
	return out
}

// Whatever type, layout and normalization, the pixels on the sheet are those of the image.
func TestPreviewShowsThePixels(t *testing.T) {
	norm := store.Normalization{Applied: true, Scale: 255, Mean: []float64{.485, .456, .406}, Std: []float64{.229, .224, .225}}
	normalized := func(v float64, c int) float64 { return (v/255 - norm.Mean[c]) / norm.Std[c] }
	plain := func(v float64, _ int) float64 { return v }
	unit := func(v float64, _ int) float64 { return v / 255 }
	for _, c := range []struct {
		name   string
		dtype  tensor.DType
		f      func(float64, int) float64
		norm   *store.Normalization
		within int
		values string
	}{
		{"bytes", tensor.Uint8, plain, nil, 0, "bytes as stored"},
		{"float32 normalized", tensor.Float32, normalized, &norm, 0, "normalization undone"},
		{"float64 normalized", tensor.Float64, normalized, &norm, 0, "normalization undone"},
		{"float16 normalized", tensor.Float16, normalized, &norm, 1, "normalization undone"},
		{"bfloat16 normalized", tensor.BFloat16, normalized, &norm, 1, "normalization undone"},
		{"float32 0 to 1", tensor.Float32, unit, nil, 0, "0 black, 1 white"},
		{"uint16", tensor.Uint16, func(v float64, _ int) float64 { return 100 * v }, nil, 1, "stretched: 0 black, 25500 white"},
		{"int32", tensor.Int32, func(v float64, _ int) float64 { return v - 128 }, nil, 0, "stretched: -128 black, 127 white"},
	} {
		for _, layout := range []string{tensor.CHW, tensor.HWC} {
			schema := datasettest.SchemaOf(c.dtype, layout, "only")
			schema.Fields[0].Normalization = c.norm
			// Record 1 spans the whole range, so that stretching has known ends.
			path := datasettest.Build(t, schema, 2, store.Info{}, func(i int, v [][]byte) {
				values := record(layout, c.f)
				if i == 1 {
					values[0], values[1] = c.f(0, 0), c.f(255, 0)
				}
				copy(v[0], encode(t, c.dtype, values))
			})
			s := preview(t, path, Options{Count: 1, First: true})
			if s.Values != c.values {
				t.Errorf("%s %s: %q, want %q", c.name, layout, s.Values, c.values)
			}
			checkThumb(t, c.name+" "+layout, s.Picture, c.within)
		}
	}
}

// checkThumb compares the first picture of a sheet, enlarged 16 times, with the gradient.
func checkThumb(t *testing.T, name string, sheet *image.RGBA, within int) {
	t.Helper()
	const head, zoom = margin + titleLine + textLine + headGap, 16
	for y := range 8 * zoom {
		for x := range 8 * zoom {
			got := sheet.RGBAAt(margin+x, head+y)
			for c, v := range []byte{got.R, got.G, got.B} {
				if d := int(v) - int(gradient(c, y/zoom, x/zoom)); d < -within || d > within {
					t.Fatalf("%s: pixel (%d, %d) is %v, channel %d wants %d", name, x, y, got, c, gradient(c, y/zoom, x/zoom))
				}
			}
		}
	}
}

// The title names the dataset, and the generation if one was given.
func TestTitle(t *testing.T) {
	folder := datasettest.Animals(t)
	require.NoError(t, os.Rename(folder, filepath.Join(filepath.Dir(folder), "zoo")))
	folder = filepath.Join(filepath.Dir(folder), "zoo")
	for path, want := range map[string]string{folder: "zoo", folder + "@1": "zoo@1"} {
		ds, err := mmapds.Open(path)
		require.NoError(t, err)
		if got := (&sheetBuilder{path: path, ds: ds}).title(); got != want {
			t.Errorf("%s: title %s, want %s", path, got, want)
		}
		require.NoError(t, ds.Close())
	}
}

func TestThumbSize(t *testing.T) {
	for _, c := range []struct{ w, h, tw, th int }{
		{32, 32, 128, 128}, {28, 28, 112, 112}, {64, 48, 128, 96}, {1, 1, 128, 128}, {96, 96, 96, 96},
		{224, 224, 160, 160}, {320, 160, 160, 80}, {2000, 3, 160, 1},
	} {
		if got := thumbSize(c.w, c.h); got != image.Pt(c.tw, c.th) {
			t.Errorf("%d x %d is shown as %v", c.w, c.h, got)
		}
	}
}

// Nothing is drawn in the margins, whatever the captions.
func TestSheetKeepsItsMargins(t *testing.T) {
	long := strings.Repeat("a very long name of a class ", 5)
	for _, n := range []int{1, 2, 13} {
		cells := make([]cell, n)
		for i := range cells {
			cells[i] = cell{long, "#12345678"}
		}
		d, err := newDrawing(long+long, long+long, nil, min(n, 4), thumbSize(32, 40), cells)
		require.NoError(t, err)
		for i := range cells {
			d.place(i, image.NewRGBA(image.Rect(0, 0, 32, 40)))
		}
		inside := d.canvas.Rect.Inset(margin - 1)
		for y := range d.canvas.Rect.Dy() {
			for x := range d.canvas.Rect.Dx() {
				if at := image.Pt(x, y); !at.In(inside) && d.canvas.RGBAAt(x, y) != paper {
					t.Fatalf("%d cells: something at %v of %v", n, at, d.canvas.Rect)
				}
			}
		}
	}
}

func TestSheetHasALimit(t *testing.T) {
	if _, err := newDrawing("", "", nil, 100, thumbSize(100, 100), make([]cell, 100000)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
}

func TestPreviewErrors(t *testing.T) {
	scalars := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float32), store.NewField("y", tensor.Int32)}}
	path := datasettest.Build(t, scalars, 2, store.Info{}, func(int, [][]byte) {})
	for _, c := range []struct {
		opts Options
		path string
		want string
	}{
		{Options{Count: 1}, path, "no field of one image a record"},
		{Options{Count: 1, Field: "x"}, path, `field "x" cannot be shown: its records of shape () are not images`},
		{Options{Count: 1, Field: "z"}, path, `it has no field "z"`},
		{Options{Count: 1, LabelField: "images"}, datasettest.Animals(t), `field "images" is shown; labels are another field`},
		{Options{Count: 1, LabelField: "z"}, datasettest.Animals(t), `it has no field "z"`},
		{Options{Count: 1}, datasettest.SmallHDF5("new-basic"), "--field and --label-field"},
		{Options{Count: 1, Field: "tree"}, datasettest.SmallHDF5("new-chunks"), `field "tree" cannot be shown: its records of shape (4,) are not images`},
	} {
		if _, err := Draw(context.Background(), c.path, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want ... %s", c.opts, err, c.want)
		}
	}
}

func TestWritePNG(t *testing.T) {
	dir := t.TempDir()
	img := image.NewRGBA(image.Rect(0, 0, 3, 2))
	picture := func(w io.Writer) error { return encodePNG(w, img) }
	path := filepath.Join(dir, "a.png")
	for range 2 { // the second time it replaces the first
		require.NoError(t, cli.WriteFile(path, picture))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if got, err := png.Decode(bytes.NewReader(data)); err != nil || got.Bounds() != img.Rect {
		t.Errorf("%v, %v", got, err)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "b.png"), 0o777))
	if err := cli.WriteFile(filepath.Join(dir, "b.png"), picture); err == nil || strings.Count(err.Error(), "b.png") != 1 {
		t.Errorf("a folder in the way: %v", err)
	}
	if err := cli.WriteFile(filepath.Join(dir, "no", "c.png"), picture); err == nil || !strings.HasSuffix(err.Error(), "no such file or directory; make the folder "+filepath.Join(dir, "no")+" first") {
		t.Errorf("no folder: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Boxes are drawn over their images, as they are stored and as a pipeline moves them.
func TestPreviewDrawsWhatLiesOnImages(t *testing.T) {
	boxes, labels := store.NewRagged("boxes", tensor.Float32, 4), store.NewRagged("kinds", tensor.Int64)
	boxes.Content, boxes.Instances, labels.Instances, labels.Classes = tensor.Boxes, "objects", "objects", []string{"cat", "dog"}
	schema := datasettest.SchemaOf(tensor.Uint8, tensor.HWC, "a")
	schema.Fields = append(schema.Fields, boxes, labels)
	h, w := schema.Fields[0].Shape[0], schema.Fields[0].Shape[1]
	path := datasettest.Build(t, schema, 3, store.Info{}, func(i int, values [][]byte) {
		clear(values[0])
		for _, v := range []float32{0, 0, float32(w) / 2, float32(h)} {
			values[2] = binary.LittleEndian.AppendUint32(values[2], math.Float32bits(v))
		}
		values[3] = append(values[3], 1, 0, 0, 0, 0, 0, 0, 0)
	})
	flip, err := transforms.Compose(transforms.HorizontalFlip{})
	require.NoError(t, err)
	for _, p := range []*transforms.Pipeline{nil, flip} {
		s := preview(t, path, Options{Count: 3, Pipeline: p})
		top, dog := margin+titleLine+textLine+headGap+legendLine, render.Color(1)
		left, right := s.Picture.RGBAAt(margin+1, top+markedSize/2), s.Picture.RGBAAt(margin+markedSize-1, top+markedSize/2)
		if p == nil && (left != dog || right == dog) || p != nil && (left == dog || right != dog) {
			t.Errorf("pipeline %v: the edges of the picture are %v and %v, and a box is %v", p, left, right, dog)
		}
		if swatch := s.Picture.RGBAAt(margin+2, margin+titleLine+textLine+legendGap+2); swatch != dog {
			t.Errorf("the legend begins with %v", swatch)
		}
	}
}

func TestReadPipeline(t *testing.T) {
	for text, want := range map[string]string{
		`[{"op": "HorizontalFlip"}]`: "", "transforms:\n- {op: HorizontalFlip}\n": "", "resize: 3": "is neither a list of transforms", "[{op: Flop}]": "Flop", "[": "x.yaml",
	} {
		path := filepath.Join(t.TempDir(), "x.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		if _, err := readPipeline(path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
