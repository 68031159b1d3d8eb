package source

import (
	"encoding/binary"
	"slices"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Names of the fields of a source of labeled images, which users see in batches.
const (
	ImagesName = "images"
	LabelsName = "labels"
)

// NumberField returns a field of numbers with a fixed shape.
func NumberField(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Field: store.NewField(name, dtype, shape...)}
}

// RaggedField returns a field whose values have any number of rows, each of the given shape.
func RaggedField(name string, dtype tensor.DType, shape ...int) Field {
	return Field{Field: store.NewRagged(name, dtype, shape...)}
}

// ContentField returns a field of bytes of any length whose content is tensor.Image, tensor.Images or tensor.Text.
func ContentField(name, content string) Field {
	f := RaggedField(name, tensor.Uint8)
	f.Content = content
	return f
}

// LabelField returns a field of class numbers: positions in classes.
func LabelField(name string, classes []string) Field {
	f := NumberField(name, tensor.Int64)
	f.Classes = classes
	return f
}

// Image reports whether each value is the file of one image.
func (f Field) Image() bool { return f.Content == tensor.Image }

// showsImages reports whether each value is the file of an image, or a list of such files.
func (f Field) showsImages() bool { return f.Image() || f.Content == tensor.Images }

// SortImagesFirst moves images to the front of a list of fields, for formats that have no order or an alphabetical
// order, so that a batch is a pair of images and labels. All other fields keep their order.
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

// BoxFormat is the notation of boxes. The zero value is the notation of datasets: left, top, right and bottom in
// pixels. Rotated boxes follow torchvision's BoundingBoxFormat, with angles in degrees counterclockwise.
type BoxFormat struct {
	Layout   string // one of BoxLayouts; "" means xyxy
	Relative bool   // x is divided by the width of the image and y by its height; of keypoints, too
}

// BoxLayouts are the known orders of the numbers of a box. The last three are rotated boxes.
var BoxLayouts = []string{"xyxy", "xywh", "cxcywh", "xywhr", "cxcywhr", "xyxyxyxy"}

// Numbers returns the number of numbers that describe a box.
func (b BoxFormat) Numbers() int {
	switch b.Layout {
	case "xywhr", "cxcywhr":
		return 5
	case "xyxyxyxy":
		return 8
	}
	return 4
}

// ClassNumbers returns the position of each class name.
func ClassNumbers(names []string) map[string]int64 {
	numbers := make(map[string]int64, len(names))
	for i, n := range names {
		numbers[n] = int64(i)
	}
	return numbers
}

func FieldNames(fields []Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// PutInt sets the value of a field to an int64.
func PutInt(v *Values, field int, x int64) {
	binary.LittleEndian.PutUint64(v.Make(field, 8), uint64(x))
}
