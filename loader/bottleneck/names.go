package bottleneck

import "fmt"

// Names is how sentences name the options of a loader, for programs that set them by other names: in a configuration
// file, or from another language. The functions return an option with a value, as a user of the program writes it. The
// zero value of each field means the name in Go.
type Names struct {
	Workers   func(n int) string       // "Workers 4"
	Find      string                   // "Workers 0": the loader finds the number of workers
	BatchSize func(records int) string // "BatchSize 64"
	Prefetch  func(batches int) string // "Prefetch 32": that may wait ready, in all
	Block     string                   // "Block": the sampler
	Sampler   string                   // "the Sampler"
	Source    string                   // "the Source"
	Transform string                   // "a Transform"
}

// WithDefaults returns n with the names in Go for its zero values.
func (n Names) WithDefaults() Names {
	for _, f := range []struct {
		name *func(int) string
		goes string
	}{{&n.Workers, "Workers %d"}, {&n.BatchSize, "BatchSize %d"}, {&n.Prefetch, "Prefetch %d"}} {
		if *f.name == nil {
			*f.name = func(v int) string { return fmt.Sprintf(f.goes, v) }
		}
	}
	for _, f := range []struct {
		name *string
		goes string
	}{{&n.Find, "Workers 0"}, {&n.Block, "Block"}, {&n.Sampler, "the Sampler"}, {&n.Source, "the Source"},
		{&n.Transform, "a Transform"}} {
		if *f.name == "" {
			*f.name = f.goes
		}
	}
	return n
}
