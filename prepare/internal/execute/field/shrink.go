package field

import (
	"bytes"
	"image"
	"image/jpeg"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/transforms"
)

// shrinkField is an encodedField that makes large photos smaller: it stores JPEGs of the output of the pipeline.
// Other files are stored as they are.
type shrinkField struct {
	encodedField
	pipeline *transforms.Pipeline
	longer   bool // limit is about the longer side, otherwise the shorter
	limit    int  // pixels; photos with more are large
	quality  int  // of the JPEGs that are made
}

func (f *shrinkField) NewWorker() Worker {
	return &shrinkWorker{encodedWorker{f.encodedField, f.opener()}, f, f.pipeline.Runner(), nil, image.RGBA{}}
}

// shrinkWorker is the Worker of a shrinkField.
type shrinkWorker struct {
	encodedWorker
	field  *shrinkField
	runner *transforms.Runner
	rgb    []byte
	rgba   image.RGBA
}

func (w *shrinkWorker) Do(name string, dst, value []byte) (out []byte, err error) {
	v := w.opener.parse(value)
	if v.err != nil {
		return dst, &SampleError{v.err}
	}
	c := v.file.Config
	if !w.field.isLarge(c) {
		return w.keep(name, dst, v)
	}
	src, err := w.opener.open(v)
	if err == nil {
		err = w.shrink(src)
	}
	if err != nil {
		return dst, &SampleError{err}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, &w.rgba, &jpeg.Options{Quality: w.field.quality}); err != nil {
		return dst, err
	}
	file := b.Bytes()
	// The first two bytes of a JPEG mark its beginning; EXIF is the first segment after them.
	dst = append(dst[:0], file[:2]...)
	// The orientation of a TIFF is applied by its decoder.
	if turned := c.Format == imagefile.TIFF; !turned {
		dst = appendOrientation(dst, c.Orientation)
	}
	return append(dst, file[2:]...), nil
}

// isLarge reports whether an image is made smaller.
func (f *shrinkField) isLarge(c imagefile.Config) bool {
	if f.longer {
		return max(c.Width, c.Height) > f.limit
	}
	return min(c.Width, c.Height) > f.limit
}

// shrink runs the pipeline on src and puts the result in rgba. image/jpeg encodes image.RGBA, and has no type for
// RGB without alpha.
func (w *shrinkWorker) shrink(src transforms.Source) error {
	out, err := w.field.pipeline.Output(transforms.InfoOf(src))
	if err != nil {
		return err
	}
	n := out.W * out.H
	w.rgb = slices.Grow(w.rgb[:0], 3*n)[:3*n]
	if err := w.runner.Do(w.rgb, src); err != nil {
		return err
	}
	pix := slices.Grow(w.rgba.Pix[:0], 4*n)[:4*n]
	for i := range n {
		copy(pix[4*i:4*i+3], w.rgb[3*i:])
		pix[4*i+3] = 255
	}
	w.rgba = image.RGBA{Pix: pix, Stride: 4 * out.W, Rect: image.Rect(0, 0, out.W, out.H)}
	return nil
}

// appendOrientation appends an EXIF segment with an orientation (EXIF 2.3, 4.6), unless it is upright. The pixels
// are not turned, so the new file must say the same as the original.
func appendOrientation(b []byte, orientation int) []byte {
	if orientation <= 1 {
		return b
	}
	b = append(b, "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"...)
	b = append(b, byte(orientation))
	return append(b, "\x00\x00\x00\x00\x00\x00"...)
}
