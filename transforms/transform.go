package transforms

import (
	"maps"
	"slices"
)

// A Transform is one operation of a Pipeline. Its exported fields are its parameters and
// become its JSON; it is a value that nobody changes once it is in a Pipeline.
type Transform interface {
	// Op returns the name under which Register knows the type.
	Op() string

	// Resolve returns the transform with every default filled in, or an error that says
	// which parameter cannot be.
	Resolve() (Transform, error)

	// Build adds what the transform does to p. It sees in p.Info what arrives. It must
	// not allocate, as a Runner calls it for each image if the Pipeline is random.
	Build(p *Plan) error
}

var registry = map[string]decoder[Transform]{}

// Randomized is a Transform whose Build draws from Plan.Rand.
type Randomized interface {
	Transform

	// Randomized does nothing; that it is there makes the Pipeline random.
	Randomized()
}

// Register makes the type T known to Parse under the name that its Op returns. A recipe's
// entry starts from zero, so a parameter that it leaves out has its default. Register
// belongs in init functions; it panics if the name is taken.
func Register[T Transform]() {
	var zero T
	op := zero.Op()
	if _, dup := registry[op]; dup {
		panic("transforms: two transforms named " + op)
	}
	registry[op] = func(entry []byte) (Transform, error) {
		var t T
		if err := decodeStrict(entry, &t); err != nil {
			return nil, err
		}
		return t.Resolve()
	}
}

// Ops returns the names of all registered transforms, sorted.
func Ops() []string { return slices.Sorted(maps.Keys(registry)) }
