package transforms

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// Images, as decoders make them and transforms change them.
type (
	// Image is an 8-bit image: rows top to bottom, pixels left to right, channels interleaved.
	Image = pixel.Image

	// A Source is an image whose pixels may not be decoded yet: an Image, or a JPEG that is decoded only where a crop
	// needs it.
	Source = pixel.Source

	// Planar is an 8-bit image with its channels one after the other, as records in layout CHW are stored. A Runner whose
	// pipeline only crops, mirrors, converts and normalizes to CHW works on the planes as they are.
	Planar = pixel.Planar

	// Raster is an image of any numeric type and any number of channels: what microscopes and satellites make.
	Raster = pixel.Raster

	// Info says what an image or a record is without its pixels.
	Info = pixel.Info

	// Layout is the order of a record's axes.
	Layout = pixel.Layout
)

// The layouts. HWC is how images are decoded, CHW what most training code wants.
const (
	HWC = pixel.HWC
	CHW = pixel.CHW
)

// NewImage returns a black image with its own memory, without gaps.
func NewImage(w, h, c int) *Image {
	return &Image{Pix: make([]byte, w*h*c), W: w, H: h, C: c, Step: c, Stride: w * c}
}

// InfoOf returns the size and type of the image that a Source delivers.
func InfoOf(s Source) Info {
	w, h, c := s.Size()
	return Info{W: w, H: h, C: c, DType: tensor.Uint8}
}

// SourceOf returns a stored uint8 record as a Source over the same bytes: a Planar or an
// Image, as info says.
func SourceOf(info Info, record []byte) (Source, error) {
	if info.DType != tensor.Uint8 && info.DType != tensor.Invalid {
		return nil, errors.New("transforms: only uint8 records are images; this is " + info.DType.String())
	}
	if info.Layout == CHW {
		m := &Planar{Pix: record, W: info.W, H: info.H, C: info.C}
		return m, m.Validate()
	}
	m := &Image{Pix: record, W: info.W, H: info.H, C: info.C, Step: info.C, Stride: info.W * info.C}
	return m, m.Validate()
}

// checkInput returns an error for an image that no pipeline can start from.
func checkInput(i Info) error {
	const most = 1 << 20
	switch {
	case i.W <= 0 || i.H <= 0 || i.W > most || i.H > most:
		return fmt.Errorf("input is %dx%d pixels; each side must be 1 to %d", i.W, i.H, most)
	case i.C != 1 && i.C != 3:
		return fmt.Errorf("input has %d channels; must be 1 (gray) or 3 (RGB)", i.C)
	case i.DType != tensor.Uint8 && i.DType != tensor.Invalid || i.Layout != HWC:
		return fmt.Errorf("input is %v in layout %v; a pipeline starts from uint8 hwc", i.DType, i.Layout)
	}
	return nil
}
