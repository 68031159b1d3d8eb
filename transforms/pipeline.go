package transforms

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Pipeline is a list of transforms. A Pipeline never changes, and any number of goroutines may use
// it, each with its own Runner.
type Pipeline struct {
	ts     []Transform
	random bool
}

// Compose returns the pipeline that applies ts in order. The error joins everything that is wrong
// with their parameters; whether they suit an input is for Output to say. A pipeline without
// transforms is valid: it packs pixels.
func Compose(ts ...Transform) (*Pipeline, error) {
	p := &Pipeline{ts: make([]Transform, len(ts))}
	var errs []error
	for i, t := range ts {
		r, err := resolve(t)
		if err != nil {
			errs = append(errs, fmt.Errorf("transform %s: %w", opName(t), err))
			continue
		}
		p.ts[i] = r
		if _, ok := r.(Randomized); ok {
			p.random = true
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Random reports whether the result depends on the record's random stream.
func (p *Pipeline) Random() bool { return p.random }

// Transforms returns the operations, with their defaults filled in. The slice is the caller's.
func (p *Pipeline) Transforms() []Transform { return append([]Transform(nil), p.ts...) }

// Output returns the image that the pipeline makes from in; only W, H and C of in matter. The error
// names the transform that cannot process its input. The shape does not depend on random draws.
func (p *Pipeline) Output(in Info) (Info, error) {
	var plan Plan
	if err := p.build(&plan, in, Rand{}); err != nil {
		return Info{}, err
	}
	return plan.info, nil
}

// build plans the work for one input. Every transform adds to the plan in order, and nothing may
// follow a matrix, which works on the finished record.
func (p *Pipeline) build(plan *Plan, in Info, rnd Rand) error {
	if err := plan.reset(in, rnd); err != nil {
		return err
	}
	for _, t := range p.ts {
		plan.at = t
		err := errMultiplied
		if plan.matrix == nil {
			err = t.Build(plan)
		}
		if err != nil {
			return fmt.Errorf("transform %s: %w", opName(t), err)
		}
	}
	plan.finish()
	return nil
}

// MarshalJSON writes the recipe: a list with an object for each transform, with its name under "op"
// and every effective parameter.
func (p *Pipeline) MarshalJSON() ([]byte, error) { return marshalRecipe(p.ts) }

// Parse reads a recipe, as MarshalJSON writes it or shorter: a parameter that is left out has its
// default. The error joins everything that is wrong with the recipe.
func Parse(recipe []byte) (*Pipeline, error) {
	ts, err := parseRecipe(recipe, registry)
	if err != nil {
		return nil, err
	}
	return Compose(ts...)
}

// Transform is one operation of a Pipeline. The name of its type is its "op" in recipes; its
// exported fields are its parameters and become its JSON. A Transform is a value that nobody
// changes once it is in a Pipeline.
//
// Tags of the fields declare defaults and limits:
//
//	Level int `json:"level" default:"128" in:"[1,255]"`
//
// For limits that tags cannot declare, a Transform may have a method Resolve() (Transform, error).
// Resolve gets the parameters with their defaults, and returns the parameters to use or an error.
type Transform interface {
	// Build adds the work of the transform to p. p.Info describes the image
	// that arrives. Build must not allocate, as a Runner calls it for each
	// image if the Pipeline is random.
	Build(p *Plan) error
}

var registry = map[string]decoder[Transform]{}

// Randomized is a Transform whose Build draws from Plan.Rand. A Pipeline with such a transform is
// planned anew for every image, and other pipelines only when the size changes.
type Randomized interface {
	Transform

	// Randomized does nothing; a transform that has it makes the Pipeline random.
	Randomized()
}

// Register makes the type T known to Parse under T's name without its package. Register belongs in
// init functions; it panics if the name is taken, because a recipe would otherwise depend on the
// order of initialization.
func Register[T Transform]() {
	op := reflect.TypeFor[T]().Name()
	if _, dup := registry[op]; dup {
		panic("transforms: two transforms named " + op)
	}
	registry[op] = decode[Transform, T]
}

// Ops returns the names of all registered transforms, sorted.
func Ops() []string { return slices.Sorted(maps.Keys(registry)) }
