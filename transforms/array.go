package transforms

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// An ArrayTransform is one operation of an ArrayPipeline, for fields that are no images. It
// is a value with its parameters as exported fields, like a Transform.
type ArrayTransform interface {
	// Op returns the name in recipes.
	Op() string

	// Resolve returns the transform with every default filled in, or an error that says
	// which parameter cannot be.
	Resolve() (ArrayTransform, error)

	// Output returns what becomes of a field, or why the transform cannot work on it.
	Output(in tensor.Spec) (tensor.Spec, error)

	// Apply changes elements first, first+1, ... of a record of the field in, in place. The
	// runner then rounds them to the type that Output names.
	Apply(x []float64, first int, in tensor.Spec)
}

// ArrayPipeline is a list of operations on the numbers of a field: cast, scale, standardise,
// clip. Numbers are float64 in between, which is exact for all types but integers beyond
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

// Output returns what the pipeline makes of a field.
func (p *ArrayPipeline) Output(in tensor.Spec) (tensor.Spec, error) {
	if err := in.Validate(); err != nil {
		return in, err
	}
	for _, t := range p.ts {
		out, err := t.Output(in)
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
}

func decodeArray[T ArrayTransform](entry []byte) (ArrayTransform, error) {
	var t T
	if err := decodeStrict(entry, &t); err != nil {
		return nil, err
	}
	return t.Resolve()
}

// ArrayRunner does the work of an ArrayPipeline for one goroutine.
type ArrayRunner struct {
	p     *ArrayPipeline
	in    tensor.Spec
	specs []tensor.Spec // what reaches each transform, and at last the output
	chunk [512]float64
}

// Runner returns a runner for records of the field in.
func (p *ArrayPipeline) Runner(in tensor.Spec) (*ArrayRunner, error) {
	r := &ArrayRunner{p: p, in: in, specs: []tensor.Spec{in}}
	for i := range p.ts {
		out, err := (&ArrayPipeline{ts: p.ts[:i+1]}).Output(in)
		if err != nil {
			return nil, err
		}
		r.specs = append(r.specs, out)
	}
	return r, nil
}

// Do writes what becomes of the record src to dst; both are little endian and have the
// lengths of their specs. dst may be src if their elements have one size. It allocates
// nothing.
func (r *ArrayRunner) Do(dst, src []byte) error {
	out := r.specs[len(r.specs)-1]
	if len(src) != r.in.RecordBytes() || len(dst) != out.RecordBytes() {
		return fmt.Errorf("records of %d and %d bytes; %v and %v have %d and %d",
			len(src), len(dst), r.in.Shape, out.Shape, r.in.RecordBytes(), out.RecordBytes())
	}
	if len(r.p.ts) == 0 {
		copy(dst, src)
		return nil
	}
	from, to := r.in.DType, out.DType
	for first, n := 0, r.in.Shape.Elems(); first < n; first += len(r.chunk) {
		x := r.chunk[:min(len(r.chunk), n-first)]
		load(x, src[first*from.Size():], from)
		for i, t := range r.p.ts {
			t.Apply(x, first, r.specs[i])
			roundAll(x, r.specs[i+1].DType)
		}
		save(dst[first*to.Size():], x, to)
	}
	return nil
}
