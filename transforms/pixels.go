package transforms

import (
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// ForImages returns the first operation of a recipe that is for images and not for arrays of numbers; "" if the recipe
// has no such operation, or a function of the user comes before it, whose result may have another shape.
func ForImages(recipe []byte) string {
	var entries []struct {
		Op string `json:"op"`
	}
	if json.Unmarshal(recipe, &entries) == nil {
		for _, e := range entries {
			switch {
			case registry[e.Op] == nil && arrayRegistry[e.Op] == nil:
				return ""
			case arrayRegistry[e.Op] == nil:
				return e.Op
			}
		}
	}
	return ""
}

// FindPixels returns the layouts, by field, of arrays that become images by recipes, as their shapes show them: of each
// array that has a recipe for images in own, gray images of shape (H, W) too, and, if all is a recipe and no field has images, of the only array that can
// be an image. declare is a format with the name of a field that declares its layout as (H, W, C), for the error of an
// array whose shape does not show its layout.
func FindPixels(specs []tensor.Spec, own map[string]json.RawMessage, all json.RawMessage, declare string) (
	map[string]string, error) {
	found, others, images := make(map[string]string), []tensor.Spec(nil), false
	for _, s := range specs {
		recipe, named := own[s.Name]
		layouts, op := s.PixelLayouts(), ForImages(recipe)
		switch {
		case s.IsImage() || s.Content == tensor.Images:
			images = true
		case !named && len(layouts) == 1:
			others = append(others, s)
		case op == "":
		case s.IsGray():
			found[s.Name] = tensor.HWC
		case layouts == nil && s.IsBytes():
			return nil, fmt.Errorf("field %q: %s is for images, and the field has bytes that are none; if they name images, several "+
				"or none a record: --fields %s:images, and the other fields", s.Name, op, s.Name)
		case layouts == nil:
			err := fmt.Errorf("field %q: %s is for images: files, or uint8 of shape (H, W), (H, W, C) or (C, H, W) with 1 or 3 "+
				"channels, and the field is %v", s.Name, op, s)
			if s.DType == tensor.Uint8 && len(s.Shape) == 4 && s.Shape[0] == 1 { // as windows of one step have
				err = fmt.Errorf("%w; a Python function before the steps takes the only image: lambda images: images[0]", err)
			}
			return nil, err
		case len(layouts) > 1:
			return nil, fmt.Errorf("field %q: %s is for images, and pixels of shape %v may be (H, W, C) or (C, H, W); say "+declare+
				", or chw", s.Name, op, s.Shape, s.Name)
		default:
			found[s.Name] = layouts[0]
		}
	}
	if len(others) == 1 && len(all) > 0 && !images && len(found) == 0 {
		found[others[0].Name] = others[0].PixelLayouts()[0]
	}
	return found, nil
}
