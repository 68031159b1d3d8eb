// Package render draws records as pictures. PixelLayout says which elements of a record are pixels,
// Brightness how their values become brightness, and a Renderer is both for one field. A Reader
// reads the boxes, keypoints and masks that lie on an image, and Marks.Draw draws it over the
// picture. Packages preview and report use it.
package render

import (
	"context"
	"image"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Renderer draws the records of one field. Any goroutine may call its methods, each with its own
// decoder.
type Renderer struct {
	Field      store.Field
	Layout     PixelLayout // unset for a field of image files
	Brightness Brightness
}

// NewRenderer returns a Renderer for the first field that can be shown, or nil if no field can be
// shown. If the brightness depends on the values, up to 64 records spread over the dataset decide
// it.
func NewRenderer(ctx context.Context, ds *mmapds.Dataset) (*Renderer, error) {
	for _, f := range ds.Schema().Fields {
		if f.Content == tensor.Image {
			return &Renderer{Field: f, Brightness: Brightness{Text: "decoded", Plain: true}}, nil
		}
		p, err := PixelLayoutOf(f)
		if err != nil || f.Ragged {
			continue
		}
		few := make([]int, 0, 64)
		for i := range min(ds.Len(), cap(few)) {
			few = append(few, dataset.Bound(ds.Len(), i, min(ds.Len(), cap(few))))
		}
		t, err := BrightnessOf(ctx, ds, f, p, few)
		return &Renderer{Field: f, Layout: p, Brightness: t}, err
	}
	return nil, nil
}

// Draw draws record x. d decodes image files.
func (g *Renderer) Draw(d *imagefile.Decoder, x tensor.View) (*image.RGBA, error) {
	if g.Field.Content == tensor.Image {
		return Decode(d, x.Bytes())
	}
	return g.Layout.Image(x.Bytes(), g.Brightness), nil
}

// Decode returns the pixels of an image file. Gray becomes RGB; alpha is left out.
func Decode(d *imagefile.Decoder, data []byte) (*image.RGBA, error) {
	source, err := d.Open(data)
	if err != nil {
		return nil, err
	}
	w, h, c := source.Size()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	err = source.Scan(img.Rect, func(y int, strip transforms.Image) error {
		for row := range strip.H {
			for x := range w {
				px := img.Pix[img.PixOffset(x, y+row):][:4]
				for k := range 3 {
					px[k] = strip.Pix[row*strip.Stride+x*strip.Step+min(k, c-1)]
				}
				px[3] = 255
			}
		}
		return nil
	})
	return img, err
}
