package field

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
	"github.com/penstock/penstock/transforms/geometry"
)

// Jobs returns the job of each field of the source, and the fields that move with the pixels of an image. base is
// the manifest of the dataset that is appended to, whose classes keep their numbers; nil for a new dataset. A
// field of a Joint has a job, too, which is never called.
func (c Options) Jobs(fields []source.Field, base *store.Manifest) (jobs []Job, together []*Joint, err error) {
	if err := c.checkUsed(fields); err != nil {
		return nil, nil, err
	}
	if fields, err = c.findPixels(fields); err != nil {
		return nil, nil, err
	}
	recipes, err := c.recipes(fields)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range fields {
		j, err := c.fieldJob(f, recipes.Of(f.Name, HasPixels(f)))
		if label, ok := j.(copyField); err == nil && ok && base != nil && f.Classes != nil && holdsClasses(f.Field) {
			if at := base.Schema().Index(f.Name); at >= 0 {
				j, err = newRelabel(label.field, base.Fields[at].Classes)
			}
		}
		// Appending must not give a class of the dataset another number.
		if numbers, ok := j.(arrayField); ok && base != nil {
			err = numbers.extends()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		jobs = append(jobs, j)
	}
	groups, err := c.checkGeometry(fields, jobs)
	return jobs, joints(groups, jobs, fields), err
}

// words are the names of flags in errors about geometry.
var words = geometry.Words{
	Independent: "--independent %s", Pipelines: `with a "field" in the transforms of --pipeline FILE`,
	Contents: "if so: --fields '%s:%s'", Instances: "if so: --instances %s,%s",
}

// checkGeometry returns the groups of fields that move with images. It is an error if an image would move away from
// fields on it, or if class numbers in the file of a mask would be interpolated or lost.
func (c Options) checkGeometry(fields []source.Field, jobs []Job) ([]geometry.Group, error) {
	names := source.FieldNames(fields)
	var list []geometry.Field
	for i, f := range fields {
		g := geometry.Field{Spec: f.Spec}
		switch j := jobs[i].(type) {
		case *imageField:
			g.Pipeline, g.Whole = j.pipeline, !j.ownRecipe
		case *shrinkField:
			g.Pipeline = j.pipeline
		}
		list = append(list, g)
	}
	for i, f := range fields {
		j, ok := jobs[i].(*imageField)
		if ok && f.Image() && !slices.Contains(c.Independent, f.Name) {
			j.classes = geometry.MayBeMask(f.Spec, list)
		}
	}
	for _, name := range c.Independent {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--independent %s: there is no field %q%s", name, name, suggest.Hint(name, names))
		}
	}
	return geometry.Check(list, c.Independent, words)
}

// findPixels returns the fields with the layouts of arrays that become images by Options.Transforms.
func (c Options) findPixels(fields []source.Field) ([]source.Field, error) {
	if c.Transforms == nil {
		return fields, nil
	}
	recipes, err := SplitTransforms(c.Transforms)
	if err != nil {
		return nil, err
	}
	own, specs := make(map[string]json.RawMessage), []tensor.Spec(nil)
	for _, f := range fields {
		specs = append(specs, f.Spec)
		if recipe := recipes.Of(f.Name, false); recipe != nil {
			own[f.Name] = recipe
		}
	}
	found, err := transforms.FindPixels(specs, own, recipes.Of("", false), "--fields %s:hwc")
	fields = slices.Clone(fields)
	for i, f := range fields {
		if layout := found[f.Name]; layout != "" {
			fields[i].Spec = f.AsPixels(layout)
		}
	}
	return fields, err
}

// recipes returns Options.Transforms by field. A named field must exist, and entries without a name need an image.
func (c Options) recipes(fields []source.Field) (fieldTransforms, error) {
	if c.Transforms == nil {
		return nil, nil
	}
	recipes, err := SplitTransforms(c.Transforms)
	if err != nil {
		return nil, err
	}
	names := source.FieldNames(fields)
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		if name != "" && !slices.Contains(names, name) {
			return nil, fmt.Errorf("transforms: there is no field %q%s", name, suggest.Hint(name, names))
		}
	}
	if len(recipes[""]) > 0 && !slices.ContainsFunc(fields, func(f source.Field) bool {
		return HasPixels(f) && len(recipes[f.Name]) == 0
	}) {
		return nil, fmt.Errorf("transforms: %s names no field, and every image is named by others, or there is none; write "+
			"of which field it is, such as field: %s", recipes[""][0], names[0])
	}
	return recipes, nil
}

// fieldJob returns the job of a field. recipe is the field's transforms; nil if the field
// has no transforms.
//
//	array to standardize              arrayField
//	any number of images              imagesField
//	file of a mask                    maskField
//	image file, --keep-encoded        encodedField, or shrinkField with --resize
//	image file                        imageField
//	numbers with transforms           arrayField
//	pixels, with flags about images   imageField without a decoder
//	anything else                     copyField
func (c Options) fieldJob(f source.Field, recipe json.RawMessage) (Job, error) {
	if t, ok := c.Own[f.Name]; ok {
		recipe, err := withStandardize(recipe, t)
		if err != nil {
			return nil, err
		}
		return newArrayField(f, recipe)
	}
	switch {
	case f.Content == tensor.Images:
		return c.keptImages(f, recipe)
	case isMaskFile(f):
		return &maskField{copyField: copyField{f}, kept: c.KeepEncoded || f.Instances != ""}, nil
	case f.Image() && c.KeepEncoded:
		return c.keptField(f, recipe)
	case f.Image():
		return c.imageField(f, recipe)
	case recipe != nil && (!HasPixels(f) || !isImageRecipe(recipe)):
		return newArrayField(f, recipe)
	case HasPixels(f) && (recipe != nil || c.Transforms == nil && c.ChangesPixels()):
		return c.pixelField(f, recipe)
	}
	return copyField{f}, nil
}

// decodes returns a decoder of image files for one goroutine.
func (c Options) decodes() opener {
	return &fileOpener{imagefile.New(c.decoder()), rules(c.Rules)}
}

// imageField returns the job for image files.
func (c Options) imageField(f source.Field, recipe json.RawMessage) (Job, error) {
	asked := c
	c = c.WithImageDefaults()
	p, err := c.pipelineOr(recipe)
	if err != nil {
		return nil, err
	}
	return &imageField{
		pipeline: p, opener: c.decodes, asked: asked, ownRecipe: recipe != nil,
		field: func(out transforms.Info) store.Field { return c.storeField(f.Name, p, out) },
	}, nil
}

// pipelineOr returns the pipeline of a recipe, or without a recipe the pipeline that the options ask for, which
// begins with ts.
func (c Options) pipelineOr(recipe json.RawMessage, ts ...transforms.Transform) (*transforms.Pipeline, error) {
	if recipe != nil {
		return transforms.Parse(recipe)
	}
	return c.Pipeline(ts...)
}

// pixelField returns the job for arrays of pixels.
func (c Options) pixelField(f source.Field, recipe json.RawMessage) (Job, error) {
	info := pixels(f.Field)
	if f.DType != tensor.Uint8 || len(f.Shape) != 3 || info.C != 1 && info.C != 3 {
		return nil, fmt.Errorf("%v of shape %v: only uint8 pixels with 1 or 3 channels can be resized, cropped, converted "+
			"or normalized as images", f.DType, f.Shape)
	}
	// Pixels keep their layout unless a flag asks for another layout.
	if c.Layout == "" {
		c.Layout = f.Layout
	}
	color := c.Color
	c = c.WithImageDefaults()
	p, err := c.pipelineOr(recipe, recolor(color, info.C)...)
	if err != nil {
		return nil, err
	}
	return &imageField{
		pipeline: p, opener: func() opener { return pixelOpener{info} },
		field: func(out transforms.Info) store.Field { return c.storeField(f.Name, p, out) },
	}, nil
}

// recolor returns the transform that gives pixels the channels of --color.
func recolor(color string, channels int) []transforms.Transform {
	switch {
	case color == "gray" && channels == 3:
		return []transforms.Transform{transforms.Grayscale{}}
	case color == "rgb" && channels == 1:
		return []transforms.Transform{transforms.RGB{}}
	}
	return nil
}

// pixels describes the images of a field with a layout.
func pixels(f store.Field) transforms.Info {
	if len(f.Shape) != 3 {
		return transforms.Info{}
	}
	s := f.Shape
	if f.Layout == tensor.CHW {
		return transforms.Info{C: s[0], H: s[1], W: s[2], Layout: transforms.CHW}
	}
	return transforms.Info{H: s[0], W: s[1], C: s[2], Layout: transforms.HWC}
}

// storeField returns the field for the output of a pipeline. It records the normalization that was applied to the
// numbers, or that a reader is to apply.
func (c Options) storeField(name string, p *transforms.Pipeline, out transforms.Info) store.Field {
	f := store.NewField(name, out.DType, out.Shape()...)
	f.Layout = tensor.HWC
	if out.Layout == transforms.CHW {
		f.Layout = tensor.CHW
	}
	switch {
	case out.DType != tensor.Uint8:
		f.Normalization = applied(p).Applied(out.C)
	case c.Normalize.Mean != nil:
		f.Normalization = c.Normalize.Field(out.C)
	}
	return f
}

// applied returns the normalization in a pipeline.
func applied(p *transforms.Pipeline) (n Normalize) {
	for _, t := range p.Transforms() {
		if t, ok := t.(transforms.Normalize); ok {
			n.Mean, n.Std = t.Mean, t.Std
		}
	}
	return n
}
