package field

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// checkUsed returns an error for flags about images if the source has no images: what they ask for would silently
// not be done.
func (c Options) checkUsed(fields []source.Field) error {
	var idle []string
	add := func(given bool, flag string) {
		if given {
			idle = append(idle, "--"+flag)
		}
	}
	if !slices.ContainsFunc(fields, HasPixels) {
		add(c.Resize != nil, "resize")
		add(c.Crop != nil, "crop")
		add(c.Color != "", "color")
		add(c.Layout != "", "layout")
		add(c.DType != tensor.Invalid, "dtype")
		add(c.Normalize.Mean != nil, "normalize")
	}
	if !slices.ContainsFunc(fields, source.Field.Image) {
		add(c.KeepEncoded && !slices.ContainsFunc(fields, isMaskFile), "keep-encoded")
		add(c.Rules.Orient, "exif-orientation")
		add(c.Rules.AlphaName() != "dropped", "alpha")
		add(c.Rules.Deep != KeepDeep, "sixteen-bit")
		add(c.Rules.RefuseCMYK, "cmyk")
	}
	if idle == nil {
		return nil
	}
	for _, f := range fields {
		if layouts := f.PixelLayouts(); layouts != nil {
			return fmt.Errorf("%s: the source has no images that this could be done to; if %q has images: --fields %s:%s",
				strings.Join(idle, ", "), f.Name, f.Name, strings.ToLower(layouts[0]))
		}
	}
	return fmt.Errorf("%s: the source has no images that this could be done to; it has %s, which the transforms of "+
		"--pipeline change", strings.Join(idle, ", "), strings.Join(source.Shorten(source.FieldNames(fields), 6), ", "))
}
