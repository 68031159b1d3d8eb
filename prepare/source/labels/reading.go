package labels

import (
	"math"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/transforms"
)

// reading is an image while its fields are made. It is the Scratch of a Values, so a worker reuses its memory for
// the next image.
type reading struct {
	source  *samples
	image   annotatedImage
	file    []byte
	w, h    int
	objects []object
	boxes   []float32
	stack   []byte // pixels of masks
}

// open reads the file of an image and its objects, and checks that they belong together: an annotation of another
// size or orientation would put boxes in the wrong places.
func (r *reading) open(s *samples, img annotatedImage) (err error) {
	r.source, r.image, r.objects = s, img, nil
	if img.Failed != nil {
		return img.Failed
	}
	// The file is needed even if the image is no field: masks and boxes are compared with its size.
	if r.file, err = readFile(s.root, img.File, r.file); err != nil {
		return err
	}
	c, err := imagefile.ReadConfig(r.file)
	if err != nil {
		return err
	}
	// Width and height of the image after its EXIF orientation is applied, if it is applied.
	if r.w, r.h = c.Opened(s.orient); !s.reads {
		return nil
	}
	a, err := img.Read(r.w, r.h)
	if err != nil {
		return err
	}
	// Boxes of another version of the image would be in the wrong places.
	if a.Width != 0 && (a.Width != r.w || a.Height != r.h) {
		return source.ValueError("the image is %dx%d pixels, and %dx%d by its annotations%s", r.w, r.h, a.Width, a.Height,
			turnedSize(c.Orientation, r.w == a.Height && r.h == a.Width))
	}
	// Without turning the image, boxes would be on its unturned pixels.
	if a.Upright && c.Orientation > 1 && !c.Turned(s.orient) {
		return source.ValueError("its EXIF orientation (%d) turns the image, and annotations are on the image that is "+
			"turned; --exif-orientation applied turns it", c.Orientation)
	}
	r.objects = a.Objects
	return r.check()
}

// turnedSize returns a hint for an image whose annotations have width and height swapped.
func turnedSize(orientation int, swapped bool) string {
	switch {
	case !swapped:
		return ""
	case orientation >= 5:
		return "; its EXIF orientation turns it: --exif-orientation applied or ignored takes it the other way"
	}
	return ", the other way round"
}

// boxMargin is the number of pixels that an object may be outside of the image: annotations are rounded.
const boxMargin = 1

// check returns an error if an object cannot be on the image.
func (r *reading) check() error {
	r.boxes = r.boxes[:0]
	for _, o := range r.objects {
		for _, x := range o.Box {
			r.boxes = append(r.boxes, float32(x))
		}
	}
	if err := transforms.CheckBoxes(r.boxes); err != nil {
		return source.ValueError("%w", err)
	}
	for i, o := range r.objects {
		switch n := len(r.source.Classes); {
		case o.Box[0] > float64(r.w)+boxMargin || o.Box[1] > float64(r.h)+boxMargin || o.Box[2] < -boxMargin || o.Box[3] < -boxMargin:
			return source.ValueError("box %d is %v: it is outside of the image, which is %dx%d pixels", i,
				r.boxes[4*i:4*i+4], r.w, r.h)
		case o.Class < 0 || n > 0 && o.Class >= int64(n):
			return source.ValueError("object %d is of class %d, and there are %d", i, o.Class, n)
		case math.IsNaN(o.Area) || math.IsInf(o.Area, 0) || o.Area < 0:
			return source.ValueError("object %d has an area of %v", i, o.Area)
		}
	}
	return nil
}
