// Package geometry says what pipelines do to the places of pixels and to their values, and moves the masks, boxes
// and points that lie on an image with it.
//
// Fields follow an image if their content says that they lie on it. A field that could be a mask, boxes or points,
// by its name or its shape, and has no content is an error next to an image that moves, until the caller says what
// it is.
package geometry

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Effect describes how an operation changes an image.
type Effect uint8

const (
	Moves   Effect = 1 << iota // pixels come to lie elsewhere: a resize, a crop, a flip
	Blends                     // values between pixel values appear: a resize that is not nearest
	Recolor                    // values of pixels change: a jitter, a division by 255
	Labels                     // boxes change, and pixels stay
)

const (
	moves   = Moves
	blends  = Moves | Blends
	recolor = Recolor
	all     = Moves | Blends | Recolor
)

// effects lists the operations whose effect does not depend on their parameters. An operation
// listed as blending only moves pixels if its interpolation is nearest. An operation that is
// missing here is taken to do everything: a wrong guess would let a mask be blended without a word.
var effects = map[string]Effect{
	"CenterCrop": moves, "CenterCropOrPad": moves, "CornerCrop": moves, "Crop": moves, "HorizontalFlip": moves,
	"Pad":        moves,
	"RandomCrop": moves, "RandomHorizontalFlip": moves, "RandomVerticalFlip": moves, "VerticalFlip": moves,

	"ElasticTransform": blends, "Fill": blends, "Fit": blends, "Img2Dataset": blends, "RandomAffine": blends,
	"RandomPerspective": blends,
	"RandomResizedCrop": blends, "RandomRotation": blends, "Resize": blends, "ResizeKeepRatio": blends, "Rotate": blends,

	"AdjustBrightness": recolor, "AdjustContrast": recolor, "AdjustGamma": recolor, "AdjustSaturation": recolor,

	"Blur": recolor, "ColorJitter": recolor, "ConvertImageDtype": recolor, "GaussianBlur": recolor,
	"LinearTransformation": recolor,
	"Normalize":            recolor, "RandomAdjustSharpness": recolor, "RandomAutocontrast": recolor,
	"RandomEqualize":  recolor,
	"RandomErasing":   recolor,
	"RandomGrayscale": recolor, "RandomInvert": recolor, "RandomPosterize": recolor, "RandomSolarize": recolor,
	"Sharpen": recolor, "ToTensor": recolor,

	"AugMix": all, "AutoAugment": all, "RandAugment": all, "TrivialAugmentWide": all,

	"RandomIoUCrop": moves, "RandomZoomOut": moves, "RandomResize": blends, "RandomShortestSize": blends,
	"ScaleJitter": blends,

	"ClampBoundingBoxes": Labels, "SanitizeBoundingBoxes": Labels, "LabelOptions": 0, "FixedSizeCrop": moves,
	"ClampKeyPoints": Labels, "SanitizeKeyPoints": Labels, "ConvertBoundingBoxFormat": 0,

	"Grayscale": 0, "PILToTensor": 0, "RGB": 0, "ToImage": 0, "ToLayout": 0, // a gray image keeps its values in each
}

// Of returns the Effect of an operation of a pipeline. An operation from outside of package
// transforms may have every effect. The package is compared as well as the name, because a user's
// type may have the same name as a type of package transforms.
func Of(t transforms.Transform) Effect {
	switch t := t.(type) {
	case transforms.ConvertDType:
		return recolorIf(!t.NoScale)
	case transforms.ToDtype:
		return recolorIf(t.Scale)
	}
	e, known := effects[reflect.TypeOf(t).Name()]
	if !known || !strings.HasSuffix(reflect.TypeOf(t).PkgPath(), "penstock/transforms") {
		return all
	}
	if e == blends && parameters(t)["interpolation"] == `"nearest"` {
		return moves
	}
	return e
}

func recolorIf(is bool) Effect {
	if is {
		return Recolor
	}
	return 0
}

// parameters returns the parameters of an operation as JSON, by name. The recipe is the one form
// that all operations have in common.
func parameters(t transforms.Transform) map[string]string {
	var list map[string]json.RawMessage
	text, err := json.Marshal(t)
	if err != nil || json.Unmarshal(text, &list) != nil {
		return nil
	}
	out := make(map[string]string, len(list))
	for name, value := range list {
		out[name] = string(value)
	}
	return out
}

// Field is a field of a record, with the pipeline that the caller applies to it.
type Field struct {
	Spec     tensor.Spec
	Pipeline *transforms.Pipeline // of an image; nil for none
	Whole    bool                 // the pipeline is one for all images
}

// Words are the caller's names of parameters, for messages. Go, Python and the commands name them
// differently, and an error must show what its reader can type.
type Words struct {
	Independent string // says that %s is independent
	Pipelines   string // gives fields pipelines of their own
	Contents    string // says that %s has a content, such as boxes: %s
	Instances   string // says that fields are of the same instances
}

// Check returns the fields that follow the images which pipelines move, and an error for each field
// that would no longer fit the images of its record. Training on boxes that stayed where they were
// fails silently, so that every field that could be a mask, boxes or points must be named or
// declared independent. Fields in independent are the caller's responsibility.
func Check(fields []Field, independent []string, w Words) ([]Group, error) {
	var errs []error
	var left []Field
	for _, f := range fields {
		if !slices.Contains(independent, f.Spec.Name) {
			left = append(left, f)
		}
	}
	images := 0
	for _, f := range left {
		if f.Spec.IsImage() {
			images++
		}
	}
	for _, f := range left {
		if f.Pipeline != nil && MayBeMask(f.Spec, left) {
			errs = append(errs, w.classes(f, images > 1))
		}
	}
	groups, follows, err := w.groups(fields, independent)
	errs = append(errs, err)
	for _, f := range left {
		if f.Pipeline == nil {
			continue
		}
		if op := first(f.Pipeline, Moves); op != "" {
			errs = append(errs, w.moved(f, op, left, follows))
		}
	}
	return groups, errors.Join(errs...)
}

// groups returns the images that have a pipeline, with the fields that follow each, and the names
// of all followers.
func (w Words) groups(fields []Field, independent []string) (groups []Group, follows []string, err error) {
	var errs []error
	for i, f := range fields {
		if f.Pipeline == nil || !f.Spec.IsImage() || slices.Contains(independent, f.Spec.Name) {
			continue
		}
		g := Group{Image: i}
		changes := first(f.Pipeline, Moves|Labels) != ""
		var on []Field
		for k, s := range fields {
			if !s.Spec.OnImage() || s.Pipeline != nil || slices.Contains(independent, s.Spec.Name) {
				continue
			}
			at, err := imageOf(s.Spec, fields)
			switch {
			case err != nil:
				errs = append(errs, err)
			case at == i && (changes || s.Spec.Content == tensor.Mask && s.Spec.IsBytes()):
				g.Follows, on, follows = append(g.Follows, k), append(on, s), append(follows, s.Spec.Name)
			}
		}
		rows, err := w.sanitized(f, on, fields, independent)
		errs = append(errs, err)
		g.Follows = append(g.Follows, rows...)
		if len(g.Follows) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, follows, errors.Join(errs...)
}

// imageOf returns the position of the image that a field lies on, or -1 if that image is not among
// the fields. A field that names no image lies on the only one; among several images the choice is
// the caller's.
func imageOf(s tensor.Spec, fields []Field) (int, error) {
	var names []string
	last := -1
	for i, f := range fields {
		if !f.Spec.IsImage() {
			continue
		}
		if names, last = append(names, f.Spec.Name), i; f.Spec.Name == s.Image {
			return i, nil
		}
	}
	switch {
	case s.Image != "":
		return -1, nil
	case len(names) > 1:
		return -1, fmt.Errorf("the field %q (%s) lies on one of the images %s; name it", s.Name, s.Content,
			strings.Join(names, ", "))
	}
	return last, nil
}

// sanitized returns the fields whose rows belong to the same instances as boxes or keypoints on an
// image, such as labels: where the pipeline removes a box, they lose its row.
func (w Words) sanitized(image Field, on, fields []Field, independent []string) (rows []int, err error) {
	boxed := slices.ContainsFunc(on, func(f Field) bool { return f.Spec.Content == tensor.Boxes })
	if !boxed && has[transforms.RandomIoUCrop](image.Pipeline) {
		return nil, fmt.Errorf("RandomIoUCrop chooses a part of the field %q by boxes on it, and there are none; "+w.Contents,
			image.Spec.Name, "boxes", "boxes")
	}
	for _, op := range []struct {
		name, content string
		in            bool
	}{
		{"SanitizeBoundingBoxes", tensor.Boxes, has[transforms.SanitizeBoundingBoxes](image.Pipeline)},
		{"FixedSizeCrop", tensor.Boxes, boxed && has[transforms.FixedSizeCrop](image.Pipeline)},
		{"SanitizeKeyPoints", tensor.Keypoints, has[transforms.SanitizeKeyPoints](image.Pipeline)},
	} {
		if op.in {
			lost, err := w.removed(op.name, op.content, image, on, fields, independent)
			if err != nil {
				return nil, err
			}
			rows = append(rows, lost...)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

// removed returns the fields that lose a row for each row that op removes from fields of the given
// content. A field that may or may not belong to the same instances is an error.
func (w Words) removed(op, content string, image Field, on, fields []Field, independent []string) (rows []int,
	err error) {
	if !slices.ContainsFunc(on, func(f Field) bool { return f.Spec.Content == content }) {
		return nil, fmt.Errorf("%s removes %s on the field %q, and there are none; "+w.Contents, op, content,
			image.Spec.Name, content, content)
	}
	for _, b := range on {
		if b.Spec.Content != content {
			continue
		}
		if !b.Spec.Ragged {
			return nil, fmt.Errorf("%s cannot remove rows of the field %q, which has %v in every record", op, b.Spec.Name,
				b.Spec)
		}
		for i, f := range fields {
			s := f.Spec
			switch {
			case !s.Ragged || s.IsBytes() || s.Content == content || slices.Contains(independent, s.Name):
			case b.Spec.Instances == "" && s.Instances == "":
				return nil, fmt.Errorf("%s removes rows of the field %q, and the field %q (%v) may be of the same instances; "+
					w.Instances+"; or, if it is not: "+w.Independent, op, b.Spec.Name, s.Name, s, b.Spec.Name, s.Name, s.Name)
			case s.Instances == b.Spec.Instances && s.Instances != "" && !s.OnImage() && f.Pipeline == nil:
				rows = append(rows, i)
			}
		}
	}
	return rows, nil
}

// classes returns an error for a field that may be a mask and whose values the pipeline changes: a
// blend of class 1 and class 3 is class 2, which is wrong and not visible.
func (w Words) classes(f Field, several bool) error {
	op := first(f.Pipeline, Blends|Recolor)
	if op == "" {
		return nil
	}
	text := fmt.Sprintf("the field %q may be a mask, and %s would make other classes of its values; "+w.Contents,
		f.Spec.Name, op, f.Spec.Name,
		tensor.Mask)
	if several || f.Whole {
		return fmt.Errorf("%s; or, if it is a picture: %s", text, fmt.Sprintf(w.Independent, f.Spec.Name))
	}
	return fmt.Errorf("%s; or give it only geometry, with interpolation nearest; or, if it is a picture: %s", text,
		fmt.Sprintf(w.Independent, f.Spec.Name))
}

// moved returns an error for each field that stays in place while op moves the image f.
func (w Words) moved(f Field, op string, fields []Field, follows []string) error {
	var errs []error
	for _, g := range fields {
		name := g.Spec.Name
		switch {
		case name == f.Spec.Name, slices.Contains(follows, name):
		case g.Spec.OnImage() && g.Spec.Image != "" && g.Spec.Image != f.Spec.Name && g.Pipeline == nil: // of another image
		case g.Spec.IsImage() || MayBeMask(g.Spec, fields):
			if why := apart(f, g, fields); why != "" {
				errs = append(errs, fmt.Errorf(
					"%s moves the field %q, and the field %q %s; give both the same geometry, before all else that is random: %s; "+
						"or, if they do not show the same: %s",
					op, f.Spec.Name, name, why, w.Pipelines, fmt.Sprintf(w.Independent, name)))
			}
		case MayBePlaces(g.Spec):
			errs = append(errs, fmt.Errorf(
				"%s moves the field %q, and the field %q (%v) may be boxes or points in it, which would stay where they are; "+
					w.Contents+"; or, if its numbers are not places in the image: %s",
				op, f.Spec.Name, name, g.Spec, name, placesName(g.Spec), fmt.Sprintf(w.Independent, name)))
		}
	}
	return errors.Join(errs...)
}

// apart returns how g fails to move as f does, or "" if both move alike. Two pipelines draw the
// same numbers from a record's stream only if their random operations are the same and see images
// of the same size. Fixed operations may differ: the caller has written them down.
func apart(f, g Field, fields []Field) string {
	mask := MayBeMask(f.Spec, fields) || MayBeMask(g.Spec, fields)
	switch {
	case g.Pipeline == nil || first(g.Pipeline, Moves) == "":
		if mask || randomly(f.Pipeline) {
			return "stays where it is"
		}
	case f.Spec.Name > g.Spec.Name && randomly(g.Pipeline): // it is said once
	case !randomly(f.Pipeline) && !randomly(g.Pipeline): // what each does is written down
	case !slices.Equal(draws(f.Pipeline), draws(g.Pipeline)):
		return "draws other random numbers"
	case sizeOf(f.Spec) != sizeOf(g.Spec):
		return "has another size, for which it draws other random numbers"
	}
	return ""
}

// randomly reports whether a pipeline moves pixels by random numbers.
func randomly(p *transforms.Pipeline) bool {
	return slices.ContainsFunc(p.Transforms(), movesRandomly)
}

// movesRandomly reports whether a transform draws where pixels go.
func movesRandomly(t transforms.Transform) bool {
	_, random := t.(transforms.Randomized)
	return random && Of(t)&Moves != 0
}

// draws returns everything that a pipeline's random geometry depends on: its operations up to the
// last operation that moves pixels at random, except operations that neither draw nor move.
// Parameters that change values but not places are left out, so that an image with bilinear and
// its mask with nearest interpolation count as equal.
func draws(p *transforms.Pipeline) (list []string) {
	ts := p.Transforms()
	for len(ts) > 0 && !movesRandomly(ts[len(ts)-1]) {
		ts = ts[:len(ts)-1]
	}
	for _, t := range ts {
		if _, random := t.(transforms.Randomized); !random && Of(t)&Moves == 0 {
			continue
		}
		same := parameters(t)
		for _, name := range []string{"interpolation", "antialias", "fill", "pass_order"} {
			delete(same, name)
		}
		text, err := json.Marshal(same)
		if err != nil {
			panic("geometry: strings have no JSON: " + err.Error())
		}
		list = append(list, nameOf(t)+string(text))
	}
	return list
}

// first returns the name of the first operation that has any of the effects e, or "".
func first(p *transforms.Pipeline, e Effect) string {
	for _, t := range p.Transforms() {
		if Of(t)&e != 0 {
			return nameOf(t)
		}
	}
	return ""
}

// nameOf returns the name of an operation: its OpName if it has one, and otherwise the name of its type.
func nameOf(t transforms.Transform) string {
	if named, ok := t.(interface{ OpName() string }); ok {
		return named.OpName()
	}
	return reflect.TypeOf(t).Name()
}
