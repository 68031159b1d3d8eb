package source

import (
	"encoding/binary"
	"slices"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Names of the fields of a source of labeled images.
const (
	ImagesName = "images"
	LabelsName = "labels"
)

// NumberField returns a field of numbers.
func NumberField(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Field: store.NewField(name, dtype, shape...)}
}

// RaggedField returns a field of any number of rows of that shape.
func RaggedField(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Field: store.NewRagged(name, dtype, shape...)}
}

// ContentField returns a field of bytes that are tensor.Image or tensor.Text.
func ContentField(name, content string) Field {
	f := RaggedField(name, tensor.Uint8)
	f.Content = content
	return f
}

// LabelField returns a field of class numbers.
func LabelField(name string, classes []string) Field {
	f := NumberField(name, tensor.Int64)
	f.Classes = classes
	return f
}

// Image reports whether the values are files of images.
func (f Field) Image() bool { return f.Content == tensor.Image }

// showsImages reports whether the values are files of images, one or any number.
func (f Field) showsImages() bool { return f.Image() || f.Content == tensor.Images }

// SortImagesFirst sorts what becomes fields of a format that has no order of its own, or an alphabetical one: images
// come first, so that a batch is a pair of images and labels, and all else stays in its order.
func SortImagesFirst[T any](list []T, field func(T) Field) {
	slices.SortStableFunc(list, func(a, b T) int {
		switch x, y := field(a).showsImages(), field(b).showsImages(); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return 0
	})
}

// BoxFormat says how the numbers of boxes are written. The zero value is the format of datasets: left, top, right and
// bottom in pixels. Rotated boxes are as in torchvision's BoundingBoxFormat, with degrees counterclockwise.
type BoxFormat struct {
	Layout   string // one of BoxLayouts; "" is xyxy
	Relative bool   // x by the width of the image, y by its height; of keypoints as well
}

// BoxLayouts are the orders of the numbers of a box. The last three are of rotated boxes.
var BoxLayouts = []string{"xyxy", "xywh", "cxcywh", "xywhr", "cxcywhr", "xyxyxyxy"}

// Numbers returns how many numbers a box has.
func (b BoxFormat) Numbers() int {
	switch b.Layout {
	case "xywhr", "cxcywhr":
		return 5
	case "xyxyxyxy":
		return 8
	}
	return 4
}

// ClassNumbers returns the numbers of classes by their names.
func ClassNumbers(names []string) map[string]int64 {
	numbers := make(map[string]int64, len(names))
	for i, n := range names {
		numbers[n] = int64(i)
	}
	return numbers
}

// FieldNames returns the names of fields.
func FieldNames(fields []Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// PutInt makes an int64 the value of a field.
func PutInt(v *Values, field int, x int64) {
	binary.LittleEndian.PutUint64(v.Make(field, 8), uint64(x))
}
