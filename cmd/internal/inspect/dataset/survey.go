package dataset

import (
	"context"
	"math"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// BoxSurvey describes all boxes of a field. Boxes are rows of left, top, right, bottom in pixels.
type BoxSurvey struct {
	Count    int64 `json:"count"`
	Outside  int64 `json:"outside"`         // boxes that reach out of their image
	Inverted int64 `json:"inverted"`        // not boxes: right is left of left, bottom above top, or a number is not finite
	Empty    int64 `json:"empty"`           // boxes without an area
	Unknown  int64 `json:"images_unread"`   // records whose image has no size that can be read
	Records  int64 `json:"records_outside"` // records with boxes that are outside or inverted
	First    int   `json:"first_outside"`   // the first such record, -1 for none

	// Widths and Heights are of all boxes that are not inverted, in pixels. Aspects (width by
	// height) and Shares (of the area of the image) are of boxes that have an area. All numbers are
	// kept, for histograms.
	Widths, Heights, Aspects []float64 `json:"-"`
	Shares                   []float64 `json:"-"`
}

// boxSlack is how far, in pixels, a box may reach out of its image, because coordinates are
// rounded.
const boxSlack = 0.01

// BoxesOf surveys all boxes of a field.
func BoxesOf(ctx context.Context, ds *mmapds.Dataset, field store.Field) (*BoxSurvey, error) {
	s := &BoxSurvey{First: -1}
	sizes, err := newBoxSizes(ds, field)
	if err != nil {
		return nil, err
	}
	reader := NewBatchReader(ds, field)
	err = reader.Each(ctx, 0, ds.Len(), func(b Batch) error {
		for i := range b.N {
			list := Floats(b.Record(i))
			if len(list) == 0 {
				continue
			}
			w, h, err := sizes.of(ctx, b.First+i)
			if err != nil {
				return err
			}
			s.add(list, w, h, b.First+i)
		}
		return nil
	})
	return s, err
}

// add counts the boxes of a record, whose image has w by h pixels; 0 means that the size is
// unknown.
func (s *BoxSurvey) add(list []float64, w, h float64, record int) {
	wrong := s.Outside + s.Inverted
	if w == 0 {
		s.Unknown++
	}
	for ; len(list) >= 4; list = list[4:] {
		s.Count++
		width, height := list[2]-list[0], list[3]-list[1]
		if !(width >= 0 && height >= 0) || math.IsInf(width, 0) || math.IsInf(height, 0) {
			s.Inverted++
			continue
		}
		if w > 0 && (list[0] < -boxSlack || list[1] < -boxSlack || list[2] > w+boxSlack || list[3] > h+boxSlack) {
			s.Outside++
		}
		s.Widths, s.Heights = append(s.Widths, width), append(s.Heights, height)
		if width*height == 0 {
			s.Empty++
			continue
		}
		s.Aspects = append(s.Aspects, width/height)
		if w > 0 {
			s.Shares = append(s.Shares, width*height/(w*h))
		}
	}
	if s.Outside+s.Inverted > wrong {
		if s.Records++; s.First < 0 {
			s.First = record
		}
	}
}

// boxSizes finds the size of the image on which the boxes of a record lie.
type boxSizes struct {
	w, h  float64      // the size of all images; 0 if unknown
	files *BatchReader // reads image files, which have sizes of their own; nil if there are none
}

// newBoxSizes returns the sizes for a field of boxes. Without an image field, they are unknown.
func newBoxSizes(ds *mmapds.Dataset, field store.Field) (s boxSizes, err error) {
	schema := ds.Schema()
	at, err := schema.ImageOf(field.Spec)
	if err != nil || at < 0 {
		return s, nil // nothing says how large the images are
	}
	switch f := schema.Fields[at]; {
	case f.Content == tensor.Image:
		s.files = NewBatchReader(ds, f)
	case f.Layout == tensor.CHW:
		s.w, s.h = float64(f.Shape[2]), float64(f.Shape[1])
	default:
		s.w, s.h = float64(f.Shape[1]), float64(f.Shape[0])
	}
	return s, nil
}

// of returns the size of a record's image, 0 if it is unknown. Of an image file only the header is
// parsed, not the pixels.
func (s boxSizes) of(ctx context.Context, record int) (w, h float64, err error) {
	if s.files == nil {
		return s.w, s.h, nil
	}
	b, err := s.files.Read(ctx, record, record+1)
	if err != nil {
		return 0, 0, err
	}
	c, err := imagefile.ReadConfig(b.Record(0).Bytes())
	if err != nil {
		return 0, 0, nil // decoding the image reports the error
	}
	return float64(c.Width), float64(c.Height), nil
}
