package prepare

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// scenes makes a table of 3 photographs, boxes and masks of the classes 0 and 7; palette says how masks are stored.
func scenes(t *testing.T, palette bool) string {
	t.Helper()
	root := t.TempDir()
	text := "photo\tmask\tboxes\tangles\n"
	for i := range 3 {
		name := fmt.Sprintf("%d.png", i)
		rawtest.Put(t, root, "photos/"+name, rawtest.Picture(t, name, 40, 30, i))
		m := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.Gray{}, color.RGBA{128, 0, 0, 255}})
		gray := image.NewGray(m.Rect)
		for y := range 30 {
			for x := range 40 {
				if (x+i)/7%2 == y/5%2 {
					m.SetColorIndex(x, y, 1)
					gray.SetGray(x, y, color.Gray{7})
				}
			}
		}
		var b bytes.Buffer
		var err error
		if palette {
			err = png.Encode(&b, m)
		} else {
			err = png.Encode(&b, gray)
		}
		require.NoError(t, err)
		rawtest.Put(t, root, "masks/"+name, b.Bytes())
		text += fmt.Sprintf("photos/%s\tmasks/%s\t[[1,2,3,%d]]\t[0.5,1,2,3]\n", name, name, i+4)
	}
	rawtest.Put(t, root, "scenes.tsv", []byte(text))
	return filepath.Join(root, "scenes.tsv")
}

// Boxes and masks that are not declared do not follow --resize and the like: what would not fit its image is an error.
func TestGeometryOfRecords(t *testing.T) {
	const photo, mask, boxes, angles = "photo=images:image", "mask:image", "boxes:float32[*,4]", "angles:float32[4]"
	ownMask := `[{"op":"Resize","size":[16,16]},{"op":"Grayscale","field":"mask"},{"op":"Resize","field":"mask","size":[16,16],"interpolation":"nearest"}]`
	resize := func(c *Config) { c.Images.Resize = []int{16, 16} }
	for _, test := range []struct {
		fields  string
		palette bool
		change  func(*Config)
		want    string
	}{
		{fields: photo + "," + boxes, change: resize, want: `Resize moves the field "images", and the field "boxes" (float32[*,4]) may be boxes or points in it, which would stay where they are; if so: --fields 'boxes:boxes'; or, if its numbers are not places in the image: --independent boxes`},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Crop = []int{16} }, want: "CenterCrop moves the field"},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Resize, c.Images.KeepEncoded = []int{16}, true }, want: "Resize moves the field"},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Transforms = []byte(`[{"op":"HorizontalFlip"}]`) }, want: "HorizontalFlip moves the field"},
		{fields: photo + "," + angles, change: resize, want: "--independent angles"},
		{fields: photo + "," + angles, change: func(c *Config) { resize(c); c.Images.Independent = []string{"angles"} }},
		{fields: photo + "," + angles, change: func(c *Config) { resize(c); c.Images.Independent = []string{"angle"} }, want: `--independent angle: there is no field "angle"; did you mean "angles"?`},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Layout, c.Images.Color = "HWC", "gray" }},

		{fields: photo + "," + mask, change: resize, want: `the field "mask" may be a mask, and Resize would make other classes of its values; if so: --fields 'mask:mask'; or, if it is a picture: --independent mask`},
		{fields: photo + "," + mask, change: func(c *Config) { resize(c); c.Images.Independent = []string{"mask"} }},
		{fields: photo + "," + mask, change: func(c *Config) { resize(c); c.Images.Filter = "nearest" }},
		{fields: photo + "," + mask, change: func(c *Config) { c.Images.DType = tensor.Float32 }, want: "ConvertDType would make other classes"},
		{fields: photo + "," + mask, change: func(c *Config) { c.Images.Transforms = []byte(ownMask) }},
		{fields: photo + "," + mask, change: func(c *Config) {}},
		{fields: photo + "," + mask, palette: true, change: func(c *Config) {}, want: "has a palette, and is in a field that may be a mask"},
		{fields: photo + "," + mask, palette: true, change: func(c *Config) { c.Images.KeepEncoded = true }},
		{fields: mask, change: resize, want: `the field "mask" may be a mask`},
	} {
		c := plain(t, scenes(t, test.palette))
		c.Fields = test.fields
		test.change(&c)
		_, err := Run(context.Background(), c, &rawtest.Silent{})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s:\n%v\nwant %s", test.fields, err, test.want)
		}
	}
}

// A mask with its own transforms keeps its classes, in one channel.
func TestMaskKeepsClasses(t *testing.T) {
	c := plain(t, scenes(t, false))
	c.Fields = "photo=images:image,mask:image"
	c.Images.Transforms = []byte(`[{"op":"Resize","size":[64,48]},{"op":"Grayscale","field":"mask"},{"op":"Resize","field":"mask","size":[64,48],"interpolation":"nearest"}]`)
	mustRun(t, c)
	f := rawtest.Manifest(t, c.Dest).Fields[1]
	data := rawtest.Payload(t, c.Dest, "mask")
	if f.Shape.Elems() != 64*48 || len(data) != 3*64*48 {
		t.Fatalf("records of shape %v, %d bytes", f.Shape, len(data))
	}
	if n := bytes.Count(data, []byte{0}) + bytes.Count(data, []byte{7}); n != len(data) || n == bytes.Count(data, []byte{0}) {
		t.Errorf("%d of %d values are 0 or 7", n, len(data))
	}
}

// objects makes a table of n photographs of several sizes with boxes, keypoints, labels and masks with a palette, whose numbers are
// those of the boxes. Pixels show their mask.
func objects(t *testing.T, n int) string {
	t.Helper()
	root := t.TempDir()
	text := "photo\tmask\tboxes\tcorners\trelative\tpoints\tcategory\n"
	for i := range n {
		w, h := 40+4*i, 30+2*i
		rgb := image.NewNRGBA(image.Rect(0, 0, w, h))
		mask := image.NewPaletted(rgb.Rect, color.Palette{color.Gray{0}, color.RGBA{128, 0, 0, 255}, color.RGBA{0, 128, 0, 255}})
		var xywh, xyxy, cxcywh, points, labels []string
		for k := range i % 3 {
			x, y, bw, bh := 3+15*k, 4+k, 8+2*k, 10
			for v := y; v < y+bh; v++ {
				for u := x; u < x+bw; u++ {
					mask.SetColorIndex(u, v, uint8(k+1))
				}
			}
			xywh = append(xywh, fmt.Sprintf("[%d,%d,%d,%d]", x, y, bw, bh))
			xyxy = append(xyxy, fmt.Sprintf("[%d,%d,%d,%d]", x, y, x+bw, y+bh))
			cxcywh = append(cxcywh, fmt.Sprintf("[%v,%v,%v,%v]", (float64(x)+float64(bw)/2)/float64(w), (float64(y)+float64(bh)/2)/float64(h), float64(bw)/float64(w), float64(bh)/float64(h)))
			points = append(points, fmt.Sprintf("[[%d,%d,2],[0,0,0]]", x, y))
			labels = append(labels, fmt.Sprint(7*i+k))
		}
		for p := range w * h {
			v := mask.Pix[p] * 100
			rgb.Set(p%w, p/w, color.NRGBA{v, v, v, 255})
		}
		for name, m := range map[string]image.Image{"photos": rgb, "masks": mask} {
			var b bytes.Buffer
			require.NoError(t, png.Encode(&b, m))
			rawtest.Put(t, root, fmt.Sprintf("%s/%d.png", name, i), b.Bytes())
		}
		list := func(items []string) string { return "[" + strings.Join(items, ",") + "]" }
		text += fmt.Sprintf("photos/%d.png\tmasks/%d.png\t%s\t%s\t%s\t%s\t%s\n", i, i, list(xywh), list(xyxy), list(cxcywh), list(points), list(labels))
	}
	rawtest.Put(t, root, "objects.tsv", []byte(text))
	return filepath.Join(root, "objects.tsv")
}

const objectFields = "photo=images:image,mask:mask,boxes:boxes[xywh],corners:boxes,relative:boxes[cxcywh,relative],points:keypoints[2],category:int64[*]"

// Declared labels go where --resize, --crop and transforms bring the pixels, of whatever layout boxes are.
func TestLabelsFollowOffline(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"resize": func(c *Config) { c.Images.Resize = []int{24, 32} },
		"crop":   func(c *Config) { c.Images.Resize, c.Images.Crop = []int{28}, []int{24} },
		"fit":    func(c *Config) { c.Images.Resize, c.Images.Fit = []int{32}, "pad" },
		"pipeline": func(c *Config) {
			c.Images.Transforms = []byte(`[{"op":"HorizontalFlip"},{"op":"CenterCrop","size":[40,50]},{"op":"Rotate","angle":90},{"op":"PILToTensor"}]`)
		},
		"sanitize": func(c *Config) {
			c.Images.Transforms = []byte(`[{"op":"CornerCrop","size":[28],"corner":"top-right"},{"op":"SanitizeBoundingBoxes"},{"op":"PILToTensor"}]`)
			c.Fields = strings.Replace(objectFields, "corners:boxes,relative:boxes[cxcywh,relative],", "", 1)
		},
	} {
		c := plain(t, objects(t, 9))
		c.Fields, c.Instances = objectFields, []string{"boxes", "category", "points"}
		change(&c)
		mustRun(t, c)
		m := rawtest.Manifest(t, c.Dest)
		at := func(field string) store.Field { return m.Fields[m.Schema().Index(field)] }
		if f := at("boxes"); f.Content != tensor.Boxes || f.Image != "images" || f.Instances != "instances" || m.Version != 2 {
			t.Errorf("%s: %+v of version %d", name, f, m.Version)
		}
		h, w := at("mask").Shape[0], at("mask").Shape[1]
		if s := at("images").Shape; s[1] != h || s[2] != w {
			t.Fatalf("%s: masks of %dx%d for images of %v", name, w, h, s)
		}
		pixels, masks := rawtest.Payload(t, c.Dest, "images"), rawtest.Payload(t, c.Dest, "mask")
		boxes := floats(rawtest.Payload(t, c.Dest, "boxes.values"))
		if name != "sanitize" {
			for _, other := range []string{"corners.values", "relative.values"} {
				for i, v := range floats(rawtest.Payload(t, c.Dest, other)) {
					if math.Abs(float64(v-boxes[i])) > 1e-4 {
						t.Fatalf("%s: %s has %v, and boxes %v", name, other, v, boxes[i])
					}
				}
			}
		}
		offsets, labels := ints(rawtest.Payload(t, c.Dest, "boxes.offsets")), ints(rawtest.Payload(t, c.Dest, "category.values"))
		points := floats(rawtest.Payload(t, c.Dest, "points.values"))
		for i := range int(m.Records) {
			image, mask := pixels[i*3*w*h:], masks[i*w*h:][:w*h]
			for k := offsets[i]; k < offsets[i+1]; k++ {
				b, object := boxes[4*k:4*k+4], byte(labels[k]%7+1)
				in, sum := 0, 0
				for p, v := range mask {
					x, y := float32(p%w)+.5, float32(p/w)+.5
					if v == object {
						if sum++; x > b[0]-1 && x < b[2]+1 && y > b[1]-1 && y < b[3]+1 {
							in++
						}
					}
					if got := image[p]; v == 0 && got > 160 || v == 2 && got < 40 {
						t.Fatalf("%s, record %d: the mask has %d where the image has %d", name, i, v, got)
					}
				}
				area := float64((b[2] - b[0]) * (b[3] - b[1]))
				if in != sum || math.Abs(float64(sum)-area) > 6+area/3 {
					t.Errorf("%s, record %d: box %v has %d of %d numbers of its mask", name, i, b, in, sum)
				}
				if p := points[6*k : 6*k+6]; p[2] != 2 || p[5] != 0 || p[3] != 0 {
					t.Errorf("%s, record %d: points %v", name, i, p)
				}
			}
		}
		if n := len(boxes) / 4; name == "sanitize" && (n >= 9 || n == 0) || name != "sanitize" && n != 9 {
			t.Errorf("%s: %d boxes", name, n)
		}
	}
}

// Files that --keep-encoded makes smaller have masks and boxes of the new size.
func TestLabelsFollowFiles(t *testing.T) {
	c := plain(t, objects(t, 9))
	c.Fields, c.Images.KeepEncoded, c.Images.Resize = objectFields, true, []int{40}
	mustRun(t, c)
	m := rawtest.Manifest(t, c.Dest)
	if f := m.Fields[1]; f.Content != tensor.Mask || !f.Ragged {
		t.Fatalf("%+v", f)
	}
	files, ends := rawtest.Payload(t, c.Dest, "mask.values"), ints(rawtest.Payload(t, c.Dest, "mask.offsets"))
	photos, photoEnds := rawtest.Payload(t, c.Dest, "images.values"), ints(rawtest.Payload(t, c.Dest, "images.offsets"))
	boxes, boxEnds := floats(rawtest.Payload(t, c.Dest, "boxes.values")), ints(rawtest.Payload(t, c.Dest, "boxes.offsets"))
	for i := range 9 {
		mask, err := new(imagefile.Decoder).Numbers(files[ends[i]:ends[i+1]])
		require.NoError(t, err)
		photo, err := imagefile.ReadConfig(photos[photoEnds[i]:photoEnds[i+1]])
		if err != nil || mask.W != photo.Width || mask.H != photo.Height || min(mask.W, mask.H) > 40 {
			t.Fatalf("record %d: a mask of %dx%d for %dx%d, %v", i, mask.W, mask.H, photo.Width, photo.Height, err)
		}
		for k := boxEnds[i]; k < boxEnds[i+1]; k++ {
			b := boxes[4*k : 4*k+4]
			x, y := int(b[0]+b[2])/2, int(b[1]+b[3])/2
			if v := mask.Pix[y*mask.W+x]; int64(v) != k-boxEnds[i]+1 {
				t.Errorf("record %d: the mask has %d in the center of %v", i, v, b)
			}
		}
	}
}

// Boxes that are none, masks of other sizes and instances that differ are bad samples.
func TestBadLabels(t *testing.T) {
	for cells, want := range map[string]string{
		"[[5,5,2,9]]\t[1]":         "boxes: box 0 is [5 5 2 9]: right must not be less than left",
		"[[5,5,9,NaN]]\t[1]":       "boxes: box 0 is [5 5 9 NaN]: its numbers must be finite",
		"[[1,2,3]]\t[1]":           "numbers of shape (1, 3) where float32[*,4] is expected",
		"[[1,2,3,4]]\t[1,2]":       `boxes has 1 rows and category has 2; fields of the instances "instances"`,
		"[[1,2,3,4]]\t[1]":         "",
		"[]\t[]":                   "",
		"[[-5,-5,900,900]]\t[1]":   "",
		"[[-5,-5,1e300,900]]\t[1]": "is not a value of type float32",
	} {
		root := t.TempDir()
		rawtest.Put(t, root, "0.png", rawtest.Picture(t, "0.png", 40, 30, 1))
		rawtest.Put(t, root, "x.tsv", []byte("photo\tboxes\tcategory\n0.png\t"+cells+"\n"))
		c := plain(t, filepath.Join(root, "x.tsv"))
		c.Fields, c.Instances, c.Images.Resize = "photo=images:image,boxes:boxes,category:int64[*]", []string{"boxes", "category"}, []int{16, 16}
		_, err := Run(context.Background(), c, &rawtest.Silent{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n%v\nwant %s", cells, err, want)
		}
	}
	for fields, want := range map[string]string{
		"photo=images:image,boxes:boxes[xyhw]":           `"xyhw" is none of xyxy, xywh, cxcywh, xywhr, cxcywhr, xyxyxyxy, relative, on=IMAGE`,
		"photo=images:image,boxes:boxes[xywhr,relative]": "boxes with an angle have to be in pixels",
		"photo=images:image,boxes:boxes[on=imgs]":        `there is no field of images "imgs" that its boxes could lie on`,
		"photo=images:image,category:mask":               "cannot",
	} {
		c := plain(t, objects(t, 2))
		c.Fields = fields
		if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", fields, err, want)
		}
	}
}

// Rotated boxes become the upright ones around them. The numbers are of torchvision's convert_bounding_box_format.
func TestRotatedBoxes(t *testing.T) {
	for layout, rows := range map[string]map[string][4]float64{
		"cxcywhr": {
			"[50,40,20,10,30]":   {38.8397, 30.6699, 61.1603, 49.3301},
			"[50,40,20,10,-100]": {43.3395, 29.2837, 56.6605, 50.7163},
			"[50,40,20,10,215]":  {38.9406, 30.1685, 61.0594, 49.8315},
		},
		"xywhr": {
			"[50,40,20,10,30]":   {50, 30, 72.3205, 48.6603},
			"[50,40,20,10,-100]": {36.679, 38.2635, 50.0, 59.6962},
			"[50,40,20,10,215]":  {27.8812, 31.8085, 50.0, 51.4715},
		},
		"xyxyxyxy":          {"[5,2,12,9,9,12,2,5]": {2, 2, 12, 12}},
		"xyxyxyxy,relative": {"[0.1,0.1,0.3,0.2,0.25,0.4,0.05,0.3]": {5, 10, 30, 40}},
	} {
		for cell, want := range rows {
			root := t.TempDir()
			rawtest.Put(t, root, "0.png", rawtest.Picture(t, "0.png", 100, 100, 1))
			rawtest.Put(t, root, "x.tsv", []byte("photo\tboxes\n0.png\t["+cell+","+cell+"]\n0.png\t[]\n"))
			c := plain(t, filepath.Join(root, "x.tsv"))
			c.Fields = "photo=images:image,boxes:boxes[" + layout + "]"
			mustRun(t, c)
			got := floats(rawtest.Payload(t, c.Dest, "boxes.values"))
			for i := range 8 {
				if len(got) != 8 || math.Abs(float64(got[i])-want[i%4]) > 1e-3 {
					t.Fatalf("%s %s: %v, want %v twice", layout, cell, got, want)
				}
			}
		}
	}
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func ints(b []byte) []int64 {
	out := make([]int64, len(b)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}
