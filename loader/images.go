package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Images is the Transform of a field of images: crops, flips, normalization and whatever else
// the pipeline has, straight from the dataset's memory to the batch. The field holds either
// pixels, all of one size, or image files, of any sizes and in any format that the command
// preprocess reads, as its flag --keep-encoded stores them; the field's Spec says which.
//
//	p, err := transforms.Compose(
//		transforms.RandomResizedCrop{Size: []int{224}},
//		transforms.RandomHorizontalFlip{},
//		transforms.ToLayout{Layout: transforms.CHW},
//		transforms.ConvertDType{DType: tensor.Float32},
//		transforms.Normalize{Mean: mean, Std: std},
//	)
//	loader.Options{Transforms: map[string]loader.Transform{"images": loader.Images{Pipeline: p}}}
//
// Stored pixels keep their layout, and decoded ones are (H, W, C), unless the pipeline has ToLayout.
//
// Each worker decodes for itself. Of a JPEG it decodes the rows and blocks that the crop needs,
// and crop, resize, flip, color and normalization share their passes over them; other formats
// are decoded whole. Pixels equal Pillow's convert("RGB"): see docs/sources.md.
//
// A file that cannot be decoded, or that the pipeline cannot work with, fails its record:
// Options.OnError says what then. Each record has its own random stream: see Record.Rand.
type Images struct {
	Pipeline *transforms.Pipeline
	Layout   transforms.Layout // of stored pixels, (C, H, W) or (H, W, C), where their Spec does not say

	// Of image files:
	// larger images are refused from their header, before memory is taken for them; 0 means 178,956,970, Pillow's limit
	MaxPixels int
	Orient    bool // turn and mirror each as its EXIF orientation says; torchvision ignores it
	// that all of them have one size, for pipelines that keep sizes; nil if they may differ
	Same *SameSize
}

// SameSize is the size that all image files of a field have, as the images of CIFAR do: a pipeline may keep it. A file
// of another size fails its record.
type SameSize struct {
	Width, Height int
	Of            string // a file that has this size, for errors
}

// check returns an error if an image has a size other than s.
func (s *SameSize) check(m transforms.Info) error {
	if s == nil || m.W == s.Width && m.H == s.Height {
		return nil
	}
	return fmt.Errorf("its image has %dx%d pixels, but %s has %dx%d, and the pipeline keeps sizes; %w", m.W, m.H, s.Of,
		s.Width, s.Height, ErrSizes)
}

// Output returns type and shape of the pipeline's result. Image files differ in size, so that the
// pipeline must make one size of them. A record of any number of images becomes as many rows.
func (t Images) Output(in tensor.Spec) (tensor.Spec, error) {
	output := t.outputOfPixels
	if isEncoded(in) {
		output = t.outputOfFiles
	}
	out, err := output(in)
	if err != nil {
		return tensor.Spec{}, err
	}
	spec := tensor.Spec{Name: in.Name, DType: out.DType, Shape: out.Shape(), Layout: axes(out.Layout),
		Ragged: in.Content == tensor.Images}
	if out.DType == tensor.Invalid {
		spec.DType = tensor.Uint8
	}
	return spec, nil
}

// axes returns the name that a Spec uses for a layout.
func axes(l transforms.Layout) string {
	if l == transforms.CHW {
		return tensor.CHW
	}
	return tensor.HWC
}

// outputOfPixels returns the pipeline's output for stored pixels. A pipeline starts from HWC, and
// reads CHW records as planes.
func (t Images) outputOfPixels(in tensor.Spec) (transforms.Info, error) {
	info, err := t.info(in)
	if err != nil {
		return info, err
	}
	p, err := t.pipeline(info.Layout)
	if err != nil {
		return info, err
	}
	info.Layout = transforms.HWC
	out, err := p.Output(info)
	if err != nil {
		return out, err
	}
	return out, oneSize(p, info, out)
}

// someDraws is how many random streams oneSize tries. A pipeline's size cannot be derived from its
// parameters, since transforms of the caller may draw sizes too; a pipeline of random sizes shows
// more than one size within a few draws.
const someDraws = 16

// oneSize refuses a pipeline whose results differ in size from out for images of one size. The
// check runs at New: a wrong size would otherwise fail some batch in the middle of training.
func oneSize(p *transforms.Pipeline, in, out transforms.Info) error {
	if !p.Random() {
		return nil
	}
	run, w, h := p.Runner(), float32(in.W), float32(in.H)
	middle := []float32{w / 4, h / 4, 3 * w / 4, 3 * h / 4} // a box, by which some transforms choose a part
	for i := range uint64(someDraws) {
		moves, err := run.Moves(in, transforms.NewRand(1, 0, i), middle)
		if err != nil {
			return nil // labels cannot follow, or a record fails: both are reported where they matter
		}
		if w, h := moves.Size(); w != out.W || h != out.H {
			return fmt.Errorf("the pipeline makes %dx%d pixels of some images, but %dx%d of another; %w", out.W, out.H, w, h,
				ErrSizes)
		}
	}
	return nil
}

// ErrSizes is wrapped by errors about a pipeline that makes images of several sizes. Its text is
// the advice.
var ErrSizes = errors.New("have it make one size, by RandomResizedCrop, CenterCrop, or Resize to height and width, " +
	"or pad each batch to its largest: PadImages in Go, batch_transforms=PadToLargest() in Python")

// pipeline returns the Pipeline for stored pixels. Records keep their stored layout unless the
// Pipeline chooses another layout.
func (t Images) pipeline(stored transforms.Layout) (*transforms.Pipeline, error) {
	if stored == transforms.HWC {
		return t.Pipeline, nil
	}
	return transforms.Compose(append([]transforms.Transform{transforms.ToLayout{Layout: stored}},
		t.Pipeline.Transforms()...)...)
}

// info reads width, height and channels off the shape of a record of pixels.
func (t Images) info(in tensor.Spec) (transforms.Info, error) {
	s := in.Shape
	if in.DType != tensor.Uint8 || len(s) != 3 || in.Ragged {
		return transforms.Info{}, fmt.Errorf("is %s; images are uint8 of shape (C, H, W) or (H, W, C), or files of images",
			kindOf(in))
	}
	info := transforms.Info{DType: tensor.Uint8, Layout: t.layout(in), W: s[1], H: s[0], C: s[2]}
	if info.Layout == transforms.CHW {
		info.W, info.H, info.C = s[2], s[1], s[0]
	}
	if info.C != 1 && info.C != 3 {
		return info, fmt.Errorf("has shape %v, which in layout %v are %d channels; images have 1 or 3", s,
			info.Layout, info.C)
	}
	return info, nil
}

// layout returns the layout of stored pixels.
func (t Images) layout(in tensor.Spec) transforms.Layout {
	switch in.Layout {
	case tensor.CHW:
		return transforms.CHW
	case tensor.HWC:
		return transforms.HWC
	}
	return t.Layout
}

// kindOf describes a field in words, for errors.
func kindOf(in tensor.Spec) string {
	kind := fmt.Sprintf("%v%v", in.DType, in.Shape)
	if in.Ragged {
		kind += " of variable length"
	}
	if in.Content != "" {
		kind += ", content " + in.Content
	}
	return kind
}

// Worker returns a function with its own Runner and, for image files, its own decoder.
func (t Images) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	if isEncoded(in) {
		return t.fileWorker(), nil
	}
	info, err := t.info(in)
	if err != nil {
		return nil, err
	}
	p, err := t.pipeline(info.Layout)
	if err != nil {
		return nil, err
	}
	w := &imageWorker{run: p.Runner()}
	if info.Layout == transforms.CHW {
		w.planar = transforms.Planar{W: info.W, H: info.H, C: info.C}
		return w.planes, nil
	}
	w.image = transforms.Image{W: info.W, H: info.H, C: info.C, Step: info.C, Stride: info.W * info.C}
	return w.pixels, nil
}

// imageWorker is the state of one goroutine that transforms stored pixels. The image headers live
// here, because a header on the stack would escape to the heap for every record.
type imageWorker struct {
	run    *transforms.Runner
	planar transforms.Planar
	image  transforms.Image
}

// planes transforms a stored record whose channels are separate planes.
func (w *imageWorker) planes(dst, src []byte, r Record) error {
	w.planar.Pix = src
	return w.run.DoRand(dst, &w.planar, r.Rand())
}

// pixels transforms a stored record whose channels are interleaved.
func (w *imageWorker) pixels(dst, src []byte, r Record) error {
	w.image.Pix = src
	return w.run.DoRand(dst, &w.image, r.Rand())
}

// ID returns a digest of the pipeline's recipe and the other options.
func (t Images) ID() string {
	recipe, err := json.Marshal(t.Pipeline)
	if err != nil { // the pipeline was composed, so it has a recipe
		panic("loader: a pipeline without recipe: " + err.Error())
	}
	return digest.Of(string(recipe), t.Layout, t.MaxPixels, t.Orient)
}

// isEncoded reports whether the records of a field are image files. A Source that does not declare
// its content may have them, too: records of variable length are not pixels.
func isEncoded(in tensor.Spec) bool {
	return in.Ragged && in.DType == tensor.Uint8 && len(in.Shape) == 0 &&
		(in.Content == tensor.Image || in.Content == tensor.Images || in.Content == "")
}

// someSizes are widths and heights of photographs, wide, tall, large and small, for which a
// pipeline must make one size.
var someSizes = [][2]int{{500, 375}, {375, 500}, {1920, 1080}, {4000, 3000}, {61, 67}}

// outputOfFiles returns the pipeline's output for image files. Sizes that the pipeline refuses are
// skipped: a crop refuses images that are smaller than it, and this is an error of single records.
func (t Images) outputOfFiles(tensor.Spec) (out transforms.Info, err error) {
	if t.Same != nil {
		in := transforms.Info{W: t.Same.Width, H: t.Same.Height, C: 3}
		if out, err = t.Pipeline.Output(in); err == nil {
			err = oneSize(t.Pipeline, in, out)
		}
		return out, err
	}
	var from [2]int
	for _, size := range someSizes {
		o, failed := t.Pipeline.Output(transforms.Info{W: size[0], H: size[1], C: 3})
		switch {
		case failed != nil:
			if err == nil {
				err = failed
			}
		case from == [2]int{}:
			out, from = o, size
		case o != out:
			return out, fmt.Errorf("the pipeline makes %v of an image of %dx%d pixels, and %v of one of %dx%d; %w", out, from[0],
				from[1], o, size[0], size[1], ErrSizes)
		}
	}
	if from != [2]int{} {
		err = nil
	}
	return out, err
}

// fileWorker returns the function that decodes and transforms an image file of one record. The function has its own
// decoder, so each goroutine needs a function of its own.
func (t Images) fileWorker() RecordFunc {
	w := fileWorker{run: t.Pipeline.Runner(), open: t.fileOpener()}
	return w.do
}

// fileOpener returns a function that turns an image file into the input of a Runner, with its own decoder.
func (t Images) fileOpener() func(src []byte) (transforms.Source, error) {
	d := imagefile.New(imagefile.Options{MaxPixels: t.MaxPixels, Orient: t.Orient})
	return func(src []byte) (transforms.Source, error) {
		m, err := d.Open(src)
		if err != nil {
			return nil, err
		}
		return m, t.Same.check(transforms.InfoOf(m))
	}
}

// grown returns the function for records of any number of image files. All images of a record share
// one random stream: frames of a video or views of a scene must be cropped and turned alike.
func (t Images) grown(in tensor.Spec) (growFunc, error) {
	out, err := t.Output(in)
	if err != nil {
		return nil, err
	}
	size, one := out.RecordBytes(), t.fileWorker()
	return func(dst, src []byte, r Record) ([]byte, error) {
		err := tensor.EachImage(src, func(file []byte) error {
			at := len(dst)
			dst = slices.Grow(dst, size)[:at+size]
			return one(dst[at:], file, r)
		})
		return dst, err
	}, nil
}

// fileWorker is the state of one goroutine that decodes image files.
type fileWorker struct {
	run  *transforms.Runner
	open func(src []byte) (transforms.Source, error)
}

// do decodes and transforms one image file. Errors of the decoder fail this record only.
func (w *fileWorker) do(dst, src []byte, r Record) error {
	m, err := w.open(src)
	if err != nil {
		return err
	}
	return w.run.DoRand(dst, m, r.Rand())
}
