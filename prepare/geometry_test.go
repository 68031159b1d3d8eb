package prepare

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
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
		if err != nil {
			t.Fatal(err)
		}
		rawtest.Put(t, root, "masks/"+name, b.Bytes())
		text += fmt.Sprintf("photos/%s\tmasks/%s\t[[1,2,3,%d]]\t[0.5,1,2,3]\n", name, name, i+4)
	}
	rawtest.Put(t, root, "scenes.tsv", []byte(text))
	return filepath.Join(root, "scenes.tsv")
}

// Boxes and masks do not follow --resize and the like: what would not fit its image is an error.
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
		{fields: photo + "," + boxes, change: resize, want: `Resize moves the field "images", and the field "boxes" (float32[*,4]) may be boxes or points in it, which would stay where they are; leave out what moves it, and move both while training; leave the field out; or, if its numbers are not places in the image: --independent boxes`},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Crop = []int{16} }, want: "CenterCrop moves the field"},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Resize, c.Images.KeepEncoded = []int{16}, true }, want: "Resize moves the field"},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Transforms = []byte(`[{"op":"HorizontalFlip"}]`) }, want: "HorizontalFlip moves the field"},
		{fields: photo + "," + angles, change: resize, want: "--independent angles"},
		{fields: photo + "," + angles, change: func(c *Config) { resize(c); c.Images.Independent = []string{"angles"} }},
		{fields: photo + "," + angles, change: func(c *Config) { resize(c); c.Images.Independent = []string{"angle"} }, want: `--independent angle: there is no field "angle"; did you mean "angles"?`},
		{fields: photo + "," + boxes, change: func(c *Config) { c.Images.Layout, c.Images.Color = "HWC", "gray" }},

		{fields: photo + "," + mask, change: resize, want: `the field "mask" may be a mask, and Resize would make other classes of its values; give each image field transforms of its own, and the mask only geometry, with interpolation nearest: with a "field" in the transforms of --pipeline FILE; or, if it is a picture: --independent mask`},
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

// A mask with transforms of its own keeps its classes, in one channel.
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
