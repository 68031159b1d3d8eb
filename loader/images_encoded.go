package loader

import (
	"fmt"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// isEncoded reports whether the records of a field are image files. A Source that does not declare
// its content may have them, too: records of variable length are not pixels.
func isEncoded(in tensor.Spec) bool {
	return in.Ragged && in.DType == tensor.Uint8 && len(in.Shape) == 0 && (in.Content == tensor.Image || in.Content == "")
}

// someSizes are widths and heights of photographs, for which a pipeline must make one size.
var someSizes = [][2]int{{500, 375}, {375, 500}, {1920, 1080}, {4000, 3000}, {61, 67}}

// outputOfFiles returns what the pipeline makes of image files. It may refuse some of them, a
// crop for example those that are smaller.
func (t Images) outputOfFiles(tensor.Spec) (out transforms.Info, err error) {
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
			return out, fmt.Errorf("the pipeline makes %v of an image of %dx%d pixels, and %v of one of %dx%d; have it make one size, by RandomResizedCrop, CenterCrop, or Resize to height and width",
				out, from[0], from[1], o, size[0], size[1])
		}
	}
	if from != [2]int{} {
		err = nil
	}
	return out, err
}

// fileWorker returns a function with a decoder of its own.
func (t Images) fileWorker() RecordFunc {
	w := fileWorker{
		run:     t.Pipeline.Runner(),
		decoder: imagefile.New(imagefile.Options{MaxPixels: t.MaxPixels, Orient: t.Orient}),
	}
	return w.do
}

// fileWorker is what one goroutine needs to decode image files.
type fileWorker struct {
	run     *transforms.Runner
	decoder *imagefile.Decoder
}

func (w *fileWorker) do(dst, src []byte, r Record) error {
	m, err := w.decoder.Open(src)
	if err != nil {
		return err
	}
	return w.run.DoRand(dst, m, r.Rand())
}
