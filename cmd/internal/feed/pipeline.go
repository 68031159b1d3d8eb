package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
	"github.com/penstock/penstock/transforms/geometry"
)

// made is a field after its transforms.
type made struct {
	transform loader.Transform // nil leaves records as they are
	field     store.Field      // as batches have it
	image     transforms.Info  // of a record, if it is an image
	finish    *finish          // nil if nothing is left to the client
	padded    bool             // batches differ in shape
	sizes     *store.Field     // the field with the images' sizes before padding; nil if nothing is padded
}

// finish describes the numbers that a client computes from images that it receives as bytes: their
// type and the order of their axes. Mean and standard deviation are the field's Normalization.
// Bytes are a quarter of float32, and a GPU converts them faster than feed does.
type finish struct {
	DType  tensor.DType `json:"dtype"`
	Layout string       `json:"layout"`
}

// made returns the fields after their transforms, in the order of fields. It collects all errors,
// so that a user sees everything that is wrong with the transforms at once.
func (o *Options) made(fields []store.Field, fs *functions) ([]made, error) {
	var errs []error
	var out []made
	fields, err := o.declared(fields)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		recipe, own := o.recipe(f.Name)
		m := made{field: f, image: infoOf(f)}
		if recipe != nil && (own || isImage(f)) {
			var err error
			if m, err = o.makeField(f, recipe, fs); err != nil {
				errs = append(errs, fmt.Errorf("field %q: %w", f.Name, err))
			}
		}
		out = append(out, m)
	}
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Transforms)) {
		has := slices.ContainsFunc(fields, func(f store.Field) bool { return f.Name == name || name == "" && isImage(f) })
		switch {
		case has:
		case name == "":
			errs = append(errs,
				errors.New("transforms: no field has images; name the field that they are for: {\"field\": ...}"+mayBeImages(fields)))
		default:
			errs = append(errs, fmt.Errorf("transforms: there is no field %q%s", name, suggest.Hint(name, names)))
		}
	}
	groups, err := o.checkGeometry(fields)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return out, follow(out, fields, groups)
}

// declared returns the fields with the contents that Contents declares.
func (o *Options) declared(fields []store.Field) ([]store.Field, error) {
	fields = slices.Clone(fields)
	var names []string
	for i, f := range fields {
		names = append(names, f.Name)
		switch content := o.Contents[f.Name]; content {
		case "", loader.Independent:
		case loader.HWC, loader.CHW:
			fields[i].Spec = f.AsPixels(strings.ToUpper(content))
		case tensor.Mask, tensor.Boxes, tensor.Keypoints:
			fields[i].Content = content
			if err := fields[i].Validate(); err != nil {
				return nil, fmt.Errorf("contents: %w", err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Contents)) {
		switch {
		case !slices.Contains(names, name) && o.Contents[name] == loader.Independent:
			return nil, fmt.Errorf("independent: there is no field %q%s", name, suggest.Hint(name, names))
		case !slices.Contains(names, name):
			return nil, fmt.Errorf("contents: there is no field %q%s", name, suggest.Hint(name, names))
		case !slices.Contains([]string{tensor.Mask, tensor.Boxes, tensor.Keypoints, loader.HWC, loader.CHW, loader.Independent},
			o.Contents[name]):
			return nil, fmt.Errorf("contents: %q is none of mask, boxes and keypoints, and hwc and chw for pixels", o.Contents[name])
		}
	}
	return fields, o.findPixels(fields)
}

// findPixels declares the layouts of arrays that become images by transforms, in fields and in Contents.
func (o *Options) findPixels(fields []store.Field) error {
	var specs []tensor.Spec
	for _, f := range fields {
		specs = append(specs, f.Spec)
	}
	all, _ := o.recipe("")
	found, err := transforms.FindPixels(specs, o.Transforms, all, `contents={%q: "hwc"}`)
	if err != nil || len(found) == 0 {
		return err
	}
	contents := maps.Clone(o.Contents)
	if contents == nil {
		contents = make(map[string]string)
	}
	for i, f := range fields {
		if layout := found[f.Name]; layout != "" {
			fields[i].Spec, contents[f.Name] = f.AsPixels(layout), strings.ToLower(layout)
		}
	}
	o.Contents = contents
	return nil
}

// mayBeImages names the fields that can be images, for an error.
func mayBeImages(fields []store.Field) string {
	var names []string
	for _, f := range fields {
		if f.PixelLayouts() != nil {
			names = append(names, f.Name)
		}
	}
	if names == nil {
		return ""
	}
	return "; these can be images: " + strings.Join(names, ", ")
}

// follow sets type and shape of the fields that move with an image, such as boxes: they follow from
// the image's pipeline.
func follow(out []made, fields []store.Field, groups []geometry.Group) error {
	for _, g := range groups {
		for _, k := range g.Follows {
			m := &out[k]
			masks, decodes := m.transform.(loader.Masks)
			spec := geometry.Follower{In: fields[k].Spec, DType: masks.DType}.Output(out[g.Image].image)
			if m.transform != nil && !decodes {
				var err error
				if spec, err = m.transform.Output(spec); err != nil {
					return fmt.Errorf("field %q: %w", spec.Name, err)
				}
			}
			if out[g.Image].padded && spec.Content == tensor.Mask {
				spec.Shape, m.padded = tensor.Shape{}, true
			}
			m.field.Spec, m.field.Storage = spec, spec.DType.Descr()
		}
	}
	return nil
}

// words has the options' names for errors of package geometry.
var words = geometry.Words{
	Independent: "independent=[%q]", Pipelines: `transforms={"image": ..., "mask": ...}`,
	Contents: "if so, say contents={%q: %q}",
	Instances: "if so, write both with penstock.Field(%q, ..., instances=\"objects\") and penstock.Field(%q, ..., " +
		"instances=\"objects\")",
}

// recipe returns the pipeline of a field: its own pipeline, or the pipeline for all image
// fields. It is nil if neither exists, or if the field's own pipeline is null.
func (o *Options) recipe(field string) (recipe json.RawMessage, own bool) {
	recipe, own = o.Transforms[field]
	if !own {
		recipe = o.Transforms[""]
	}
	if string(recipe) == "null" {
		recipe = nil
	}
	return recipe, own
}

// checkGeometry returns which fields move with which images. It refuses pipelines that would move
// an image away from a field that lies on it.
func (o *Options) checkGeometry(fields []store.Field) ([]geometry.Group, error) {
	var list []geometry.Field
	for _, f := range fields {
		recipe, own := o.recipe(f.Name)
		g := geometry.Field{Spec: f.Spec, Whole: !own}
		if recipe, err := normalized(f, recipe); isImage(f) && f.Content != tensor.Images && recipe != nil && err == nil {
			if parts, err := splitRecipe(recipe); err == nil { // else made has reported the error
				g.Pipeline = geometryOf(parts)
			}
		}
		list = append(list, g)
	}
	groups, err := geometry.Check(list, o.independent(), words)
	if err != nil {
		return nil, err
	}
	return groups, checkFunctions(list, groups)
}

// checkFunctions refuses functions of images on which other fields lie: nobody knows where a
// function moves pixels, so boxes would stay behind.
func checkFunctions(fields []geometry.Field, groups []geometry.Group) error {
	for _, g := range groups {
		image := fields[g.Image]
		if image.Pipeline == nil || len(g.Follows) == 0 {
			continue
		}
		for _, t := range image.Pipeline.Transforms() {
			if f, ok := t.(Function); ok {
				on := fields[g.Follows[0]].Spec.Name
				return fmt.Errorf("%s may move the field %q, and not the field %q, which lies on it; give a function of both, "+
					"penstock.transforms.Record(f, takes=[%q, %q]); or, if it does not lie on it: "+words.Independent,
					f.name, image.Spec.Name, on, image.Spec.Name, on, on)
			}
		}
	}
	return nil
}

// independent returns the fields that are declared to lie on no image.
func (o *Options) independent() (names []string) {
	for name, content := range o.Contents {
		if content == loader.Independent {
			names = append(names, name)
		}
	}
	return names
}

// isImage reports whether the records of a field are images, as pixels or as files, one or several
// per record.
func isImage(f store.Field) bool {
	return f.Content == tensor.Image || f.Content == tensor.Images || f.IsImage() && f.DType == tensor.Uint8
}

// infoOf returns size, type and layout of images that are stored as numbers; zero for other fields.
func infoOf(f store.Field) transforms.Info {
	if f.Layout == "" || len(f.Shape) != 3 {
		return transforms.Info{}
	}
	s, info := f.Shape, transforms.Info{DType: f.DType, Layout: transforms.CHW}
	info.C, info.H, info.W = s[0], s[1], s[2]
	if f.Layout == tensor.HWC {
		info.Layout, info.H, info.W, info.C = transforms.HWC, s[0], s[1], s[2]
	}
	return info
}

// makeField returns a field after its pipeline. The kinds of fields (images, padded images, masks
// in files, arrays) and pipelines with functions each have a transform of their own.
func (o *Options) makeField(f store.Field, recipe json.RawMessage, fs *functions) (made, error) {
	recipe, err := normalized(f, recipe)
	if err != nil {
		return made{}, err
	}
	asBytes := o.AsBytes && !o.mixesImages() && o.OnError != "blank" // of whose zeros a client would make numbers
	if t := o.tails[f.Name]; t != nil && t.used {
		return t.makeImages(f, asBytes, fs)
	}
	parts, err := splitRecipe(recipe)
	if err != nil {
		return made{}, err
	}
	pads := o.padding(f)
	if len(parts) > 1 {
		if f.Content == tensor.Images {
			return made{}, fmt.Errorf("a function gets one image, and a record has any number; give one of whole records: "+
				"transforms=[penstock.transforms.Record(f, takes=[%q])]", f.Name)
		}
		if pads != nil && isImage(f) {
			return made{}, errors.New("a function returns images of one size, and PadToLargest pads images of several; leave " +
				"one of the two out")
		}
		return fs.makeField(f, parts, asBytes)
	}
	if isImage(f) {
		if pads != nil {
			return padded(f, recipe, pads)
		}
		return makeImages(f, recipe, asBytes, fs)
	}
	m := made{field: f}
	if f.Content == tensor.Mask && f.IsBytes() {
		m.transform, err = masks(recipe)
		return m, err
	}
	if m.transform, err = arrayTransform(recipe); err != nil {
		return m, err
	}
	m.field.Normalization = nil
	return m, m.settle(f)
}

// masks returns the transform of masks that are files. It can only change their type: everything
// else would have to follow an image.
func masks(recipe json.RawMessage) (loader.Transform, error) {
	var ts []struct {
		Op    string       `json:"op"`
		DType tensor.DType `json:"dtype"`
	}
	if err := json.Unmarshal(recipe, &ts); err == nil && len(ts) == 1 && ts[0].Op == "Cast" {
		return loader.Masks{DType: ts[0].DType}, nil
	}
	return nil, errors.New("masks that are files take one transform, Cast to the type that their numbers become")
}

// settle gives the field the type and the shape of the transform's result.
func (m *made) settle(f store.Field) error {
	spec, err := m.transform.Output(f.Spec)
	if err != nil {
		return err
	}
	m.field.Spec, m.field.Storage = spec, spec.DType.Descr()
	return nil
}

// makeImages returns a field of images after a pipeline. If the pipeline keeps sizes, all files
// must have the size of the first. With asBytes, the last steps are left to the client if they only
// convert bytes to floats.
func makeImages(f store.Field, recipe json.RawMessage, asBytes bool, fs *functions) (made, error) {
	p, err := transforms.Parse(recipe)
	if err != nil {
		return made{field: f}, err
	}
	images := loader.Images{Pipeline: p}
	whole, err := imagesOf(f, images)
	if errors.Is(err, loader.ErrSizes) && f.Ragged && f.Content != tensor.Images {
		if images.Same, err = fs.sizeOf(f); err == nil {
			whole, err = imagesOf(f, images)
		}
	}
	if err != nil || !asBytes || f.Content == tensor.Images {
		return whole, err
	}
	pixels, n, err := part(p)
	if err != nil || n == nil {
		return whole, err
	}
	front := front{images.ID(), loader.Images{Pipeline: pixels, Same: images.Same}}
	m, err := imagesOf(f, front.Images)
	if err != nil || m.field.DType != tensor.Uint8 {
		return whole, nil // what the front alone cannot do, the whole can
	}
	m.field.Normalization = n
	m.finish = &finish{whole.field.DType, whole.field.Layout}
	m.transform = front
	return m, nil
}

// makeImages applies the tail to stored pixels. The transform has the ID of the whole pipeline, so
// that a State is the same for image files and for stored pixels.
func (t *tail) makeImages(f store.Field, asBytes bool, fs *functions) (made, error) {
	m, err := makeImages(f, t.recipe, asBytes, fs)
	if err != nil {
		return m, err
	}
	switch images := m.transform.(type) {
	case front:
		m.transform = front{t.whole, images.Images}
	case loader.Images:
		m.transform = front{t.whole, images}
	}
	return m, nil
}

// padded returns a field of images of several sizes after a pipeline and a PadToLargest.
func padded(f store.Field, recipe json.RawMessage, pads *batchTransform) (made, error) {
	m := made{field: f}
	p, err := transforms.Parse(recipe)
	if err != nil {
		return m, err
	}
	m.field.Normalization = nil
	return m, pads.pad(&m, loader.Images{Pipeline: p}, f)
}

// front is the part of a pipeline that feed runs, while the client or the cache does the rest. Its
// ID is the ID of the whole pipeline, so that a State can move between clients that divide the work
// in other ways.
type front struct {
	whole string
	loader.Images
}

// ID returns a digest of the whole pipeline.
func (f front) ID() string { return f.whole }

// imagesOf returns a field of images after a pipeline.
func imagesOf(f store.Field, images loader.Images) (made, error) {
	m := made{field: f, transform: images}
	m.field.Normalization = nil
	err := m.settle(f)
	m.image = infoOf(m.field)
	return m, err
}

// part splits off the last operations of a pipeline if they only convert bytes to floats, and
// returns them as a Normalization; nil if the pipeline does not end with such operations.
func part(p *transforms.Pipeline) (*transforms.Pipeline, *store.Normalization, error) {
	ts := p.Transforms()
	n := store.Normalization{Scale: 1, Mean: []float64{0}, Std: []float64{1}}
	for end := len(ts) - 1; end >= 0; end-- {
		scaled := false
		switch t := ts[end].(type) {
		case transforms.ToLayout:
			continue
		case transforms.Normalize:
			n.Mean, n.Std = t.Mean, t.Std // there is one: Output has refused a second
			continue
		case transforms.ToTensor:
			scaled = true
		case transforms.ConvertDType:
			scaled = !t.NoScale
		default:
			return nil, nil, nil
		}
		if scaled {
			n.Scale = 255
		}
		front, err := transforms.Compose(ts[:end]...)
		return front, &n, err
	}
	return nil, nil, nil
}

// normalized fills the dataset's statistics into every Normalize of a recipe that has no numbers.
func normalized(f store.Field, recipe json.RawMessage) (json.RawMessage, error) {
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(recipe, &entries); err != nil {
		return nil, fmt.Errorf("the pipeline is not a JSON list of objects: %w", err)
	}
	changed := false
	for _, entry := range entries {
		if string(entry["op"]) != `"Normalize"` || entry["mean"] != nil || entry["std"] != nil {
			continue
		}
		n := f.Normalization
		if n == nil || n.Applied || n.Scale != 255 {
			return nil, errors.New("Normalize has no mean and std, and the dataset has none to apply, or several datasets " +
				"have different ones; give them: Normalize(mean, std)")
		}
		var errs [2]error
		entry["mean"], errs[0] = json.Marshal(n.Mean)
		entry["std"], errs[1] = json.Marshal(n.Std)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return recipe, nil
	}
	return json.Marshal(entries)
}

// arrayTransform returns the transform of a field that has no images. PadTo is a transform of the
// loader, since it makes records of one length from a ragged field; all other operations are of
// package transforms.
func arrayTransform(recipe json.RawMessage) (loader.Transform, error) {
	var pad []struct {
		Op     string  `json:"op"`
		Length int     `json:"length"`
		Value  float64 `json:"value"`
	}
	if err := json.Unmarshal(recipe, &pad); err == nil && len(pad) == 1 && pad[0].Op == "PadTo" {
		return loader.Pad{Length: pad[0].Length, Value: pad[0].Value}, nil
	}
	p, err := transforms.ParseArray(recipe)
	if err != nil {
		return nil, err
	}
	return loader.Arrays{Pipeline: p}, nil
}
