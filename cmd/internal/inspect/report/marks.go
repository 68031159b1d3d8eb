package report

import (
	"context"
	"image"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// marks draws over a picture what lies on it. A nil *marks draws nothing.
type marks struct {
	ds      *mmapds.Dataset
	reader  *render.Reader
	readers map[string]*dataset.BatchReader
	face    font.Face
}

// newMarks returns nil if nothing lies on the images.
func newMarks(ds *mmapds.Dataset, images string) (*marks, error) {
	r := render.NewReader(ds.Schema().Fields, images)
	if r == nil {
		return nil, nil
	}
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, err
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 11, DPI: 72, Hinting: font.HintingFull})
	m := &marks{ds: ds, reader: r, readers: make(map[string]*dataset.BatchReader), face: face}
	for _, name := range r.Fields() {
		m.readers[name] = dataset.NewBatchReader(ds, ds.Schema().Fields[ds.Schema().Index(name)])
	}
	return m, err
}

// draw returns the picture of a record, reduced, with its marks. They are drawn after scaling, so
// that lines have the same width on every picture.
func (m *marks) draw(ctx context.Context, record int, picture *image.RGBA) (*image.RGBA, error) {
	if m == nil {
		return picture, nil
	}
	w, h := picture.Rect.Dx(), picture.Rect.Dy()
	found, err := m.reader.Read(func(field string) (tensor.Spec, []byte, error) {
		batch, err := m.readers[field].Read(ctx, record, record+1)
		if err != nil {
			return tensor.Spec{}, nil, err
		}
		return m.ds.Schema().Fields[m.ds.Schema().Index(field)].Spec, batch.Record(0).Bytes(), nil
	}, w, h)
	if err != nil {
		return nil, err
	}
	long := max(w, h)
	out := image.NewRGBA(image.Rect(0, 0, max(1, w*markedPixels/long), max(1, h*markedPixels/long)))
	draw.CatmullRom.Scale(out, out.Rect, picture, picture.Rect, draw.Src, nil)
	found.Draw(out, out.Rect, m.face)
	return out, nil
}
