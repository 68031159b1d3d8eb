package tensor

import (
	"fmt"
	"slices"
)

// Values of Spec.Content that say what the bytes of a field are: ragged uint8 of shape ().
const (
	Text  = "utf-8" // a text, without an end mark
	Image = "image" // an encoded image file: JPEG, PNG, ...

	// Images is any number of encoded image files, each after its length: see [AppendImage].
	Images = "images"

	// SourceName is the record's name in the source: the path of its file, the member of its archive. A
	// schema has at most one such field. Readers leave it out unless it is requested.
	SourceName = "source-name"
)

// Values of Spec.Content that say what numbers mean, such as places in an image. Transforms
// that move the pixels of an image move what lies on it.
//
// Places are in corner coordinates: the pixel of column c and row r covers [c, c+1) x [r, r+1), so
// that an image of w by h pixels is [0, w] x [0, h].
const (
	// Mask is a class or an instance for each pixel of an image: integers or bool of shape (h, w), or with a
	// layout and one channel; ragged rows of that shape with a mask for each instance; or ragged uint8 of
	// shape () with an image file, whose samples or palette indexes are the classes or instances. In a field
	// with Instances the file has the masks of all instances, one below the other, each as high as the
	// image; a record without an instance has an empty file.
	Mask = "mask"

	// Boxes are left, top, right and bottom of boxes, in pixels: float32 whose last axis is 4.
	Boxes = "boxes"

	// Keypoints are x and y of points, in pixels, and whether they are visible (0 is not labeled, 1
	// hidden, 2 visible): float32 whose last axis is 3, or 2 without visibility.
	Keypoints = "keypoints"
)

// Sparse is the Spec.Content of rows of a matrix that are mostly zero: each value that is stored, with its column. A
// record has any number of pairs, which are rows of shape (2,): a column below Width, and the value in it, both of the
// field's type, which holds both exactly. No column is in a record twice. Columns need not ascend.
const Sparse = "sparse"

// Contents lists the values of Spec.Content.
func Contents() []string {
	return []string{Text, Image, Images, SourceName, Mask, Boxes, Keypoints, Sparse}
}

// OnImage reports whether the field lies on an image: it is a mask, boxes or keypoints.
func (s Spec) OnImage() bool {
	return s.Content == Mask || s.Content == Boxes || s.Content == Keypoints
}

// IsBytes reports whether records are bytes that are not numbers: a text, a name or image files.
func (s Spec) IsBytes() bool {
	return s.Content != "" && s.Ragged && s.DType == Uint8 && len(s.Shape) == 0
}

// IsImage reports whether records are pictures, as pixels or as files. A mask is not one.
func (s Spec) IsImage() bool {
	return s.Content == Image || s.Content == "" && s.Layout != "" && len(s.Shape) == 3 && !s.Ragged
}

// PixelLayouts returns the layouts that records without one can have if they are pixels: bytes with 1 or 3 channels as
// their last axis (HWC) or their first axis (CHW).
func (s Spec) PixelLayouts() (list []string) {
	if s.DType != Uint8 || s.Ragged || s.Content != "" || s.Layout != "" || len(s.Shape) != 3 {
		return nil
	}
	if c := s.Shape[2]; c == 1 || c == 3 {
		list = append(list, HWC)
	}
	if c := s.Shape[0]; c == 1 || c == 3 {
		list = append(list, CHW)
	}
	return list
}

// IsGray reports whether records without a layout can be pixels of one channel, without an axis for it: bytes of shape
// (H, W), as the digits of MNIST have in NumPy files.
func (s Spec) IsGray() bool {
	return s.DType == Uint8 && !s.Ragged && s.Content == "" && s.Layout == "" && len(s.Shape) == 2
}

// AsPixels returns the Spec of the same records as pixels in a layout: gray pixels get an axis for their channel.
func (s Spec) AsPixels(layout string) Spec {
	if s.IsGray() {
		at := 0
		if layout == HWC {
			at = 2
		}
		s.Shape = slices.Insert(slices.Clone(s.Shape), at, 1)
		if s.Dims != nil {
			s.Dims = slices.Insert(slices.Clone(s.Dims), at+1, "")
		}
	}
	s.Layout = layout
	return s
}

// validateContent reports a type or a shape that Content cannot have.
func (s Spec) validateContent() error {
	n := len(s.Shape)
	wrong := func(want string) error {
		return fmt.Errorf("field %q: content %s needs %s, not %v", s.Name, s.Content, want, s)
	}
	switch s.Content {
	case "":
	case Text, Image, Images, SourceName:
		if !s.IsBytes() {
			return wrong("uint8[*]")
		}
	case Mask:
		channel := n == 3 && (s.Layout == HWC && s.Shape[2] == 1 || s.Layout == CHW && s.Shape[0] == 1)
		if !s.IsBytes() && (n != 2 && !channel || s.DType.IsFloat()) {
			return wrong("integers of shape (h, w), rows of that shape, or uint8[*] of an image file")
		}
	case Boxes:
		if s.DType != Float32 || n == 0 || s.Shape[n-1] != 4 {
			return wrong("float32 with a last axis of 4, such as float32[*,4]")
		}
	case Keypoints:
		if s.DType != Float32 || n == 0 || s.Shape[n-1] != 2 && s.Shape[n-1] != 3 {
			return wrong("float32 with a last axis of 3, or of 2 without visibility, such as float32[*,17,3]")
		}
	case Sparse:
		if !s.Ragged || n != 1 || s.Shape[0] != 2 || s.Width < 1 || !s.DType.HoldsIndex(s.Width-1) {
			return wrong("pairs of a column and a value, such as float32[*,2], and a width whose columns the type holds")
		}
	}
	if s.Width != 0 && s.Content != Sparse {
		return fmt.Errorf("field %q: only content %s has a width, here %d", s.Name, Sparse, s.Width)
	}
	if s.Features != nil && len(s.Features) != s.columns() {
		return fmt.Errorf("field %q: %d names of features for %d columns", s.Name, len(s.Features), s.columns())
	}
	if s.Image != "" && !s.OnImage() {
		return fmt.Errorf("field %q: only masks, boxes and keypoints lie on an image, here %q", s.Name, s.Image)
	}
	if s.Instances != "" && (!s.Ragged || s.IsBytes() && s.Content != Mask) {
		return fmt.Errorf("field %q: instances %q need any number of rows, not %v", s.Name, s.Instances, s)
	}
	if s.OnImage() && s.Layout != "" && len(s.Shape) != 3 {
		return fmt.Errorf("field %q: content %s has no layout", s.Name, s.Content)
	}
	return nil
}

// columns returns how many names Features has.
func (s Spec) columns() int {
	if s.Content == Sparse {
		return s.Width
	}
	if s.Ragged || len(s.Shape) != 1 {
		return 0
	}
	return s.Shape[0]
}

// String writes type and shape as the flag --fields of preprocess takes them: int64, float32[*,4].
func (s Spec) String() string {
	axes := ""
	if s.Ragged {
		axes = ",*"
	}
	for _, n := range s.Shape {
		axes += fmt.Sprintf(",%d", n)
	}
	if axes == "" {
		return s.DType.String()
	}
	return s.DType.String() + "[" + axes[1:] + "]"
}
