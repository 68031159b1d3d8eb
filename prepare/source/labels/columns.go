package labels

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"math"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Names of columns. The ragged ones have a row for each object of the image, in one order.
const (
	imagesColumn    = source.ImagesName
	labelsColumn    = source.LabelsName
	boxesColumn     = "boxes"
	areaColumn      = "area"
	crowdColumn     = "iscrowd"
	difficultColumn = "difficult"
	truncatedColumn = "truncated"
	keypointsColumn = "keypoints"
	masksColumn     = "masks" // a mask for each object
	maskColumn      = "mask"  // a class for each pixel
	imageIDColumn   = "image_id"
)

// instances is the name of the group of fields whose rows are the objects of an image.
const instances = "objects"

// columnOf says how the objects of an image become a field.
type columnOf struct {
	make  func(f setFormat, name string) source.Field
	put   func(r *reading, v *source.Values, at int) error
	alone bool // put needs the image only, and not its objects
}

// columnsByName has the columns of all formats. A setFormat lists the columns of its format.
//
//	images      the file of the image
//	image_id    int64, the id of COCO
//	labels      int64[*], class of each object
//	boxes       float32[*,4], left, top, right and bottom in pixels
//	keypoints   float32[*,N,3], x, y and visibility
//	area        float32[*], in pixels
//	iscrowd, difficult, truncated   uint8[*], 0 or 1
//	masks       a bitmap for each object, in one PNG
//	mask        the class of each pixel, as a PNG
var columnsByName = map[string]columnOf{
	imagesColumn: {
		make: func(_ setFormat, name string) source.Field { return source.ContentField(name, tensor.Image) },
		put: func(r *reading, v *source.Values, at int) error {
			v.Borrow(at, r.file)
			return nil
		},
		alone: true,
	},
	imageIDColumn: {
		make: func(_ setFormat, name string) source.Field { return source.NumberField(name, tensor.Int64) },
		put: func(r *reading, v *source.Values, at int) error {
			source.PutInt(v, at, r.image.ID)
			return nil
		},
		alone: true,
	},
	labelsColumn: {
		make: func(f setFormat, name string) source.Field {
			field := rowsField(name, tensor.Int64)
			field.Classes = f.Classes
			return field
		},
		put: eachRow(func(b []byte, o *object) []byte { return binary.LittleEndian.AppendUint64(b, uint64(o.Class)) }),
	},
	boxesColumn: {
		make: func(_ setFormat, name string) source.Field {
			field := rowsField(name, tensor.Float32, 4)
			field.Content = tensor.Boxes
			return field
		},
		put: eachRow(func(b []byte, o *object) []byte {
			for _, x := range o.Box {
				b = appendFloat(b, float32(x))
			}
			return b
		}),
	},
	keypointsColumn: {
		make: func(f setFormat, name string) source.Field {
			field := rowsField(name, tensor.Float32, f.Points, 3)
			field.Content = tensor.Keypoints
			return field
		},
		put: eachRow(func(b []byte, o *object) []byte {
			for _, x := range o.Points {
				b = appendFloat(b, x)
			}
			return b
		}),
	},
	areaColumn: {
		make: func(_ setFormat, name string) source.Field { return rowsField(name, tensor.Float32) },
		put:  eachRow(func(b []byte, o *object) []byte { return appendFloat(b, float32(o.Area)) }),
	},
	crowdColumn:     flagColumn(func(o *object) bool { return o.Crowd }),
	difficultColumn: flagColumn(func(o *object) bool { return o.Difficult }),
	truncatedColumn: flagColumn(func(o *object) bool { return o.Truncated }),
	masksColumn: {
		make: func(_ setFormat, name string) source.Field {
			field := source.ContentField(name, tensor.Mask)
			field.Instances = instances
			return field
		},
		put: (*reading).putMasks,
	},
	maskColumn: {
		make: func(f setFormat, name string) source.Field {
			field := source.ContentField(name, tensor.Mask)
			field.Classes = f.MaskClasses
			return field
		},
		put: (*reading).putMask,
	},
}

// rowsField returns a field with a row for each object.
func rowsField(name string, dtype tensor.DType, shape ...int) source.Field {
	f := source.RaggedField(name, dtype, shape...)
	f.Instances = instances
	return f
}

// eachRow returns the function put of a column that appends a row for each object.
func eachRow(row func(b []byte, o *object) []byte) func(r *reading, v *source.Values, at int) error {
	return func(r *reading, v *source.Values, at int) error {
		b := v.Buffer(at)
		for i := range r.objects {
			b = row(b, &r.objects[i])
		}
		v.Keep(at, b)
		return nil
	}
}

// flagColumn returns a column of 0 or 1 for each object.
func flagColumn(is func(o *object) bool) columnOf {
	return columnOf{
		make: func(_ setFormat, name string) source.Field { return rowsField(name, tensor.Uint8) },
		put: eachRow(func(b []byte, o *object) []byte {
			if is(o) {
				return append(b, 1)
			}
			return append(b, 0)
		}),
	}
}

func appendFloat(b []byte, x float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
}

// maxStack limits the pixels in the masks of all objects of an image.
const maxStack = 1 << 30

// putMasks sets a field to the masks of all objects, below each other in one PNG with a bit for each pixel; empty
// if there are no objects.
func (r *reading) putMasks(v *source.Values, at int) error {
	n, size := len(r.objects), r.w*r.h
	if n == 0 {
		v.Make(at, 0)
		return nil
	}
	// The bitmap of all masks is one allocation.
	if int64(n)*int64(size) > maxStack {
		return source.ValueError("%d masks of %dx%d pixels are more than %d pixels", n, r.w, r.h, maxStack)
	}
	// The memory of the last image is used again.
	stack := imagefile.NewBitmap(r.stack, r.w, n*r.h)
	r.stack = stack.Rows
	for i := range r.objects {
		m, err := r.draw(i)
		if err != nil {
			return err
		}
		m.Paint(func(x, y0, y1 int) {
			for y := y0; y < y1; y++ {
				stack.Set(x, i*r.h+y)
			}
		})
	}
	b, err := stack.Append(v.Buffer(at))
	v.Keep(at, b)
	return err
}

// draw returns the mask of object i.
func (r *reading) draw(i int) (runMask, error) {
	if r.objects[i].Draw == nil {
		return runMask{}, source.ValueError("object %d has a box and no outline", i)
	}
	m, err := r.objects[i].Draw(r.w, r.h)
	if err != nil {
		return m, source.ValueError("object %d: %w", i, err)
	}
	return m, nil
}

// ignoredPixel is the class of a pixel that belongs to several objects. Losses ignore it by convention.
const ignoredPixel = 255

// putMask writes the class of each pixel. The image's own mask file has them; without a file, a pixel of no object is
// 0, a pixel of one object is its class + 1, and a pixel of several objects is 255, as in torchvision's reference for
// segmentation on COCO.
func (r *reading) putMask(v *source.Values, at int) error {
	if r.image.Mask != nil {
		b, err := r.image.Mask(v.Buffer(at))
		if v.Keep(at, b); err != nil {
			return err
		}
		c, err := imagefile.ReadConfig(b)
		if err == nil && (c.Width != r.w || c.Height != r.h) {
			err = source.ValueError("the mask is %dx%d pixels, and its image %dx%d", c.Width, c.Height, r.w, r.h)
		}
		return err
	}
	r.stack = pixel.Grow(r.stack, r.w*r.h)
	clear(r.stack)
	for i, o := range r.objects {
		// 0 is the background and 255 is ignored, so 254 classes remain.
		if o.Class+1 >= ignoredPixel {
			return source.ValueError("object %d: class %d, and a mask holds 254", i, o.Class)
		}
		m, err := r.draw(i)
		if err != nil {
			return err
		}
		m.Paint(func(x, y0, y1 int) {
			for y := y0; y < y1; y++ {
				if p := &r.stack[y*r.w+x]; *p == 0 {
					*p = byte(o.Class + 1)
				} else {
					*p = ignoredPixel
				}
			}
		})
	}
	return putPNG(v, at, &image.Gray{Pix: r.stack, Stride: r.w, Rect: image.Rect(0, 0, r.w, r.h)})
}

// putPNG sets a field to an image as a PNG file.
func putPNG(v *source.Values, at int, img image.Image) error {
	b := bytes.NewBuffer(v.Buffer(at))
	err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(b, img)
	v.Keep(at, b.Bytes())
	return err
}
