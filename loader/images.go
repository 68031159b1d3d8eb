package loader

import (
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Images is the Transform of a field of stored uint8 images: crops, flips, normalisation
// and whatever else the pipeline has, straight from the dataset's memory to the batch.
//
//	p, err := transforms.Compose(
//		transforms.RandomHorizontalFlip{},
//		transforms.ToLayout{Layout: transforms.CHW},
//		transforms.ConvertDType{DType: tensor.Float32},
//		transforms.Normalize{Mean: mean, Std: std},
//	)
//	loader.Options{Transforms: map[string]loader.Transform{
//		"images": loader.Images{Pipeline: p, Layout: transforms.CHW},
//	}}
//
// Each record has its own random stream: see Record.Rand.
type Images struct {
	Pipeline *transforms.Pipeline
	Layout   transforms.Layout // of the stored records: (C, H, W) or (H, W, C)
}

// Output returns type and shape of what the pipeline makes.
func (t Images) Output(in tensor.Spec) (tensor.Spec, error) {
	info, err := t.info(in)
	if err != nil {
		return tensor.Spec{}, err
	}
	info.Layout = transforms.HWC
	out, err := t.Pipeline.Output(info)
	if err != nil {
		return tensor.Spec{}, err
	}
	dt := out.DType
	if dt == tensor.Invalid {
		dt = tensor.Uint8
	}
	return tensor.Spec{Name: in.Name, DType: dt, Shape: out.Shape()}, nil
}

// info reads width, height and channels off a record's shape.
func (t Images) info(in tensor.Spec) (transforms.Info, error) {
	s := in.Shape
	if in.DType != tensor.Uint8 || len(s) != 3 {
		return transforms.Info{}, fmt.Errorf("is %v%v; images are uint8 of shape (C, H, W) or (H, W, C)", in.DType, s)
	}
	info := transforms.Info{DType: tensor.Uint8, Layout: t.Layout, W: s[1], H: s[0], C: s[2]}
	if t.Layout == transforms.CHW {
		info.W, info.H, info.C = s[2], s[1], s[0]
	}
	if info.C != 1 && info.C != 3 {
		return info, fmt.Errorf("has shape %v, which in layout %v are %d channels; images have 1 or 3", s, t.Layout, info.C)
	}
	return info, nil
}

// Worker returns a function with a Runner of its own.
func (t Images) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	info, err := t.info(in)
	if err != nil {
		return nil, err
	}
	w := &imageWorker{run: t.Pipeline.Runner()}
	if t.Layout == transforms.CHW {
		w.planar = transforms.Planar{W: info.W, H: info.H, C: info.C}
		return w.planes, nil
	}
	w.image = transforms.Image{W: info.W, H: info.H, C: info.C, Step: info.C, Stride: info.W * info.C}
	return w.pixels, nil
}

// imageWorker is what one goroutine needs.
type imageWorker struct {
	run    *transforms.Runner
	planar transforms.Planar
	image  transforms.Image
}

func (w *imageWorker) planes(dst, src []byte, r Record) error {
	w.planar.Pix = src
	return w.run.DoRand(dst, &w.planar, r.Rand())
}

func (w *imageWorker) pixels(dst, src []byte, r Record) error {
	w.image.Pix = src
	return w.run.DoRand(dst, &w.image, r.Rand())
}

// ID returns a digest of the pipeline's recipe.
func (t Images) ID() string {
	recipe, err := json.Marshal(t.Pipeline)
	if err != nil { // the pipeline was composed, so it has a recipe
		panic("loader: a pipeline without recipe: " + err.Error())
	}
	return digest(string(recipe), t.Layout)
}
