package loader

import (
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Arrays is the Transform of a field of numbers: a cast, a scale, one-hot vectors and whatever
// else the pipeline has. Records of variable length must become ones of one length.
type Arrays struct {
	Pipeline *transforms.ArrayPipeline
}

// Output returns type and shape of what the pipeline makes.
func (t Arrays) Output(in tensor.Spec) (tensor.Spec, error) {
	out, err := t.Pipeline.Output(in)
	if err == nil && out.Ragged {
		err = fmt.Errorf("records keep lengths of their own: end the pipeline with PadTruncate")
	}
	return out, err
}

// Worker returns a function with an ArrayRunner of its own.
func (t Arrays) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	run, err := t.Pipeline.Runner(in)
	if err != nil {
		return nil, err
	}
	return func(dst, src []byte, _ Record) error { return run.Do(dst, src) }, nil
}

// ID returns a digest of the pipeline's recipe.
func (t Arrays) ID() string {
	recipe, err := json.Marshal(t.Pipeline)
	if err != nil { // the pipeline was composed, so it has a recipe
		panic("loader: a pipeline without recipe: " + err.Error())
	}
	return digest.Of(string(recipe))
}
