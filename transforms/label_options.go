package transforms

import (
	"fmt"
	"strings"
)

func init() {
	Register[LabelOptions]()
	Register[ClampBoundingBoxes]()
	Register[SanitizeBoundingBoxes]()
	Register[ConvertBoundingBoxFormat]()
	Register[ClampKeyPoints]()
	Register[SanitizeKeyPoints]()
}

// LabelOptions says how masks, boxes and keypoints follow the transforms after it. It does nothing to pixels.
type LabelOptions struct {
	// what masks have where the image is filled; nil means 0
	MaskFill *int `json:"mask_fill" default:"0"`
	// how masks are resized: nearest-exact, where pixels go, or nearest, which torchvision takes unless it is given
	// nearest-exact: half a step to the lower right; "" means nearest-exact
	MaskResize string `json:"mask_resize" default:"nearest-exact" choices:"nearest-exact nearest"`
	// how keypoints are flipped: corners, where pixels go, or pixels, as torchvision does: a pixel to the left;
	// "" means corners
	Keypoints string `json:"keypoints" default:"corners" choices:"corners pixels"`
}

// Build sets the options. LabelOptions after a move would apply to a part of the pipeline only, so
// that it is an error.
func (t LabelOptions) Build(p *Plan) error {
	if len(p.moves.list) > 0 {
		return fmt.Errorf("comes after transforms that move labels; put it first")
	}
	p.moves.options = t
	return nil
}

// ClampBoundingBoxes cuts boxes off at the edges of the image, as in torchvision. All operations
// except resizes and flips cut boxes off already.
type ClampBoundingBoxes struct{}

// Build adds the operation.
func (ClampBoundingBoxes) Build(p *Plan) error {
	p.moved(moveClamp, [4]int{})
	return nil
}

// SanitizeBoundingBoxes removes boxes that are too small or lie outside of the image, as in
// torchvision, and the rows of all fields of the same instances.
type SanitizeBoundingBoxes struct {
	MinSize *float64 `json:"min_size" default:"1" in:"[1,inf]"` // least width and height in pixels
	MinArea *float64 `json:"min_area" default:"1" in:"[1,inf]"` // least area in pixels
}

// Build adds the operation.
func (t SanitizeBoundingBoxes) Build(p *Plan) error {
	p.moved(moveSanitize, [4]int{}, *t.MinSize, *t.MinArea)
	return nil
}

// ConvertBoundingBoxFormat is torchvision's transform of this name. Boxes are always XYXY here, so
// that it does nothing for XYXY and refuses other formats. It exists for recipes that name the
// format anyway.
type ConvertBoundingBoxFormat struct {
	Format string `json:"format"`
}

// Resolve refuses other formats.
func (t ConvertBoundingBoxFormat) Resolve() (Transform, error) {
	if strings.EqualFold(t.Format, "XYXY") {
		return t, nil
	}
	return nil, fmt.Errorf("format %q: boxes of batches are XYXY, in which all transforms move them; convert the boxes "+
		"of a batch, as by torchvision.ops.box_convert(batch[\"boxes\"].values, \"xyxy\", %q). Boxes that are stored in "+
		"another format are converted by preprocess: --fields 'bbox=boxes:boxes[xywh]'", t.Format, strings.ToLower(t.Format))
}

// Build does nothing.
func (ConvertBoundingBoxFormat) Build(*Plan) error { return nil }

// ClampKeyPoints moves keypoints outside of the image to its edge. Keypoints that are not labeled
// stay as they are.
type ClampKeyPoints struct{}

// Build adds the operation.
func (ClampKeyPoints) Build(p *Plan) error {
	p.moved(moveClampPoints, [4]int{})
	return nil
}

// SanitizeKeyPoints removes keypoints outside of the image, and the rows of all fields of the same instances. An
// instance with several keypoints is removed if any keypoint is outside. Keypoints that are not labeled do not
// count.
type SanitizeKeyPoints struct{}

// Build adds the operation.
func (SanitizeKeyPoints) Build(p *Plan) error {
	p.moved(moveSanitizePoints, [4]int{})
	return nil
}
