package column

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Content declares a field as an annotation of an image, as a type of --fields.
type Content struct {
	Name   string // tensor.Mask, tensor.Boxes or tensor.Keypoints, or hwc or chw for pixels; "" for no annotation
	Image  string // name of the image field that the annotation belongs to; "" if there is only one
	Boxes  source.BoxFormat
	Points int // of keypoints: number of points in a row; 0 means one
}

// Layouts of pixels, as types of --fields.
const (
	hwc = "hwc"
	chw = "chw"
)

// parseContent reads hwc, chw, or mask, boxes or keypoints with optional brackets: boxes[xywh], boxes[cxcywh,relative,on=left],
// keypoints[17], mask[on=left]. is is false for all other types.
func parseContent(text string) (c Content, is bool, err error) {
	if text == hwc || text == chw {
		return Content{Name: text}, true, nil
	}
	name, more, has := strings.Cut(text, "[")
	if name != tensor.Mask && name != tensor.Boxes && name != tensor.Keypoints {
		return c, false, nil
	}
	c.Name = name
	more, closed := strings.CutSuffix(more, "]")
	if !has {
		return c, true, nil
	}
	for word := range strings.SplitSeq(more, ",") {
		word = strings.TrimSpace(word)
		image, on := strings.CutPrefix(word, "on=")
		n, number := strconv.Atoi(word)
		switch {
		case !closed:
			return c, true, fmt.Errorf("type %q: a bracket is not closed", text)
		case on && image != "":
			c.Image = image
		case name == tensor.Boxes && slices.Contains(source.BoxLayouts, word):
			c.Boxes.Layout = word
		case name != tensor.Mask && word == "relative":
			c.Boxes.Relative = true
		case name == tensor.Keypoints && number == nil && n > 0 && n <= 1<<16:
			c.Points = n
		default:
			words := map[string][]string{
				tensor.Mask: {"on=IMAGE"}, tensor.Keypoints: {"17 (a number of points)", "relative", "on=IMAGE"},
				tensor.Boxes: append(slices.Clone(source.BoxLayouts), "relative", "on=IMAGE"),
			}[name]
			return c, true, fmt.Errorf("type %q: %q is none of %s%s", text, word, strings.Join(words, ", "),
				suggest.Hint(word, words))
		}
	}
	if c.Boxes.Relative && c.Boxes.Numbers() == 5 {
		return c, true, fmt.Errorf("type %q: boxes with an angle have to be in pixels, as their sides have no direction in "+
			"parts of an image", text)
	}
	return c, true, nil
}

// String returns the notation that parseContent reads.
func (c Content) String() string {
	var words []string
	if c.Boxes.Layout != "" {
		words = append(words, c.Boxes.Layout)
	}
	if c.Points > 0 {
		words = append(words, strconv.Itoa(c.Points))
	}
	if c.Boxes.Relative {
		words = append(words, "relative")
	}
	if c.Image != "" {
		words = append(words, "on="+c.Image)
	}
	if words == nil {
		return c.Name
	}
	return c.Name + "[" + strings.Join(words, ",") + "]"
}

// CellType returns the type of a table's cells with this content: a path for a mask, rows of numbers for boxes and
// keypoints. A keypoint is x, y and visibility.
func (c Content) CellType() string {
	switch {
	case c.Name == tensor.Mask:
		return "image"
	case c.Name == hwc, c.Name == chw:
		return ""
	case c.Name == tensor.Boxes:
		return fmt.Sprintf("float32[*,%d]", c.Boxes.Numbers())
	case c.Points > 0:
		return fmt.Sprintf("float32[*,%d,3]", c.Points)
	}
	return "float32[*,3]"
}

// Declare gives the content to a field of a source. It refuses a field with another shape, as transforms rely on
// the shape when they move boxes and keypoints with their image. Boxes are stored with four numbers, whatever the
// notation of the source is.
func (c Content) Declare(f *source.Field) error {
	if c.Name == "" {
		return nil
	}
	n := len(f.Shape)
	last := 0
	if n > 0 {
		last = f.Shape[n-1]
	}
	switch layout := strings.ToUpper(c.Name); {
	case slices.Contains(f.PixelLayouts(), layout), f.IsGray() && (c.Name == hwc || c.Name == chw):
		f.Spec = f.AsPixels(layout)
		return nil
	case f.Layout != "" && f.Layout == layout:
		return nil
	case c.Name == tensor.Mask && f.IsBytes(), c.Name == tensor.Mask && f.Content == "" && !f.DType.IsFloat():
	case c.Name == tensor.Boxes && last == c.Boxes.Numbers() && f.Content == "":
	case c.Name == tensor.Keypoints && (last == 2 || last == 3) && f.Content == "":
	default:
		return fmt.Errorf("--fields %s:%s: the field is %v and cannot be %s", f.Name, c, f.Spec, map[string]string{
			hwc:              "pixels: uint8 of shape (H, W), or (H, W, C) with 1 or 3 channels",
			chw:              "pixels: uint8 of shape (H, W), or (C, H, W) with 1 or 3 channels",
			tensor.Mask:      "a mask: integers for each pixel, or an image file",
			tensor.Boxes:     fmt.Sprintf("boxes: rows of %d numbers", c.Boxes.Numbers()),
			tensor.Keypoints: "keypoints: rows of 3 numbers, or of 2"}[c.Name])
	}
	f.Content, f.Spec.Image, f.Boxes = c.Name, c.Image, c.Boxes
	if c.Name == tensor.Boxes && last != 4 {
		f.Shape = append(slices.Clone(f.Shape[:n-1]), 4) // as they are converted
	}
	if c.Points > 0 && n > 0 && (n < 2 || f.Shape[n-2] != c.Points) {
		return fmt.Errorf("--fields %s:%s: the field is %v", f.Name, c, f.Spec)
	}
	return nil
}
