package transforms

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Pipeline is a list of transforms that fit each other. It does not change and may be used
// by any number of goroutines, each with its own Runner.
type Pipeline struct {
	ts     []Transform
	random bool
}

// Compose returns the pipeline that does ts in order. It reports everything that is wrong
// with their parameters at once; whether they suit an input is for Output to say. No
// transforms at all are a pipeline too: it packs pixels.
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

// Transforms returns the operations, with their defaults filled in, in a new slice.
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

// build plans the work for one input.
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

// Parse reads a recipe, as MarshalJSON writes it or shorter: a parameter that is left out has
// its default. All that is wrong with the recipe is in the error.
func Parse(recipe []byte) (*Pipeline, error) {
	ts, err := parseRecipe(recipe, registry)
	if err != nil {
		return nil, err
	}
	return Compose(ts...)
}

// A Transform is one operation of a Pipeline. The name of its type is its "op" in recipes; its
// exported fields are its parameters and become its JSON. It is a value that nobody changes
// once it is in a Pipeline.
//
// Tags of the fields declare defaults and limits:
//
//	Level int `json:"level" default:"128" in:"[1,255]"`
//
// For what they cannot declare, a Transform may have a method Resolve() (Transform, error), which gets the
// parameters with their defaults and returns those to use, or an error that says which cannot be.
type Transform interface {
	// Build adds what the transform does to p. It sees in p.Info what arrives. It must
	// not allocate, as a Runner calls it for each image if the Pipeline is random.
	Build(p *Plan) error
}

var registry = map[string]decoder[Transform]{}

// Randomized is a Transform whose Build draws from Plan.Rand.
type Randomized interface {
	Transform

	// Randomized does nothing; a transform that has it makes the Pipeline random.
	Randomized()
}

// Register makes the type T known to Parse under T's name without its package. A recipe's
// entry starts from zero, so a parameter that it leaves out has its default. Register
// belongs in init functions; it panics if the name is taken.
func Register[T Transform]() {
	op := reflect.TypeFor[T]().Name()
	if _, dup := registry[op]; dup {
		panic("transforms: two transforms named " + op)
	}
	registry[op] = decode[Transform, T]
}

// Ops returns the names of all registered transforms, sorted.
func Ops() []string { return slices.Sorted(maps.Keys(registry)) }
