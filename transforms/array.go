package transforms

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// An ArrayTransform is one operation of an ArrayPipeline, for fields that are not images. It
// is a value with its parameters as exported fields, like a Transform.
type ArrayTransform interface {
	// Op returns the name in recipes.
	Op() string

	// Resolve returns the transform with every default filled in, or an error that says
	// which parameter cannot be.
	Resolve() (ArrayTransform, error)

	// Output returns what becomes of a field, or why the transform cannot work on it.
	Output(in tensor.Spec) (tensor.Spec, error)

	// Apply changes elements first, first+1, ... of a record of the field in, in place; the
	// rows of a Ragged one follow each other. The runner then rounds them to the type that
	// Output names.
	Apply(x []float64, first int, in tensor.Spec)
}

// An ArrayRemaker is an ArrayTransform that makes another number of elements. Its Apply is
// not called.
type ArrayRemaker interface {
	ArrayTransform

	// Remade returns how many elements are made of n, of a record of the field in.
	Remade(n int, in tensor.Spec) int

	// Remake makes dst of all the elements of a record, or says why that record cannot be
	// used. It sets every element of dst.
	Remake(dst, src []float64, in tensor.Spec) error
}

// ArrayPipeline is a list of operations on the numbers of a field: cast, scale, standardise,
// clip, logarithm, one-hot, reshape, pad or truncate. Numbers are float64 in between, which is exact for all types but integers beyond
// 2^53. It may be used by any number of goroutines, each with its own ArrayRunner.
type ArrayPipeline struct{ ts []ArrayTransform }

// ComposeArray returns the pipeline that does ts in order, or all that is wrong with their
// parameters.
func ComposeArray(ts ...ArrayTransform) (*ArrayPipeline, error) {
	p := &ArrayPipeline{ts: make([]ArrayTransform, len(ts))}
	var errs []error
	for i, t := range ts {
		r, err := t.Resolve()
		if err != nil {
			errs = append(errs, fmt.Errorf("transform %s: %w", t.Op(), err))
		}
		p.ts[i] = r
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// maxElements bounds what a transform makes of a record, or of a row of one: 16 GiB as the float64 that it
// computes with.
const maxElements = 1 << 31

// Output returns what the pipeline makes of a field.
func (p *ArrayPipeline) Output(in tensor.Spec) (tensor.Spec, error) {
	if err := in.Validate(); err != nil {
		return in, err
	}
	for _, t := range p.ts {
		out, err := t.Output(in)
		if err == nil {
			err = out.Validate()
		}
		if err == nil && out.RecordBytes()/out.DType.Size() > maxElements {
			err = fmt.Errorf("makes records of shape %v; at most %d elements are possible", out.Shape, maxElements)
		}
		if err != nil {
			return out, fmt.Errorf("transform %s: %w", t.Op(), err)
		}
		in = out
	}
	return in, nil
}

// MarshalJSON writes the recipe, as that of a Pipeline.
func (p *ArrayPipeline) MarshalJSON() ([]byte, error) { return marshalRecipe(p.ts) }

// ParseArray reads what MarshalJSON writes.
func ParseArray(recipe []byte) (*ArrayPipeline, error) {
	ts, err := parseRecipe(recipe, arrayRegistry)
	if err != nil {
		return nil, err
	}
	return ComposeArray(ts...)
}

var arrayRegistry = map[string]decoder[ArrayTransform]{
	"Cast":        decodeArray[Cast],
	"Scale":       decodeArray[Scale],
	"Standardize": decodeArray[Standardize],
	"Clip":        decodeArray[Clip],
	"Log1p":       decodeArray[Log1p],
	"OneHot":      decodeArray[OneHot],
	"Reshape":     decodeArray[Reshape],
	"PadTruncate": decodeArray[PadTruncate],
}

func decodeArray[T ArrayTransform](entry []byte) (ArrayTransform, error) {
	var t T
	if err := decodeStrict(entry, &t); err != nil {
		return nil, err
	}
	return t.Resolve()
}
