package loader

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Transform converts the stored records of a field to the records of batches, in the same pass that
// gathers them; Images and Pad are two. A Transform with the method ID() string identifies itself,
// so that Resume refuses a run with another Transform.
type Transform interface {
	// Output returns the type and shape of a transformed record of in. The Name is in.Name.
	Output(in tensor.Spec) (tensor.Spec, error)

	// Worker returns the function that one goroutine will use, which may have state of
	// its own. The number of the goroutine is for its logs: results must not depend on
	// it.
	Worker(in tensor.Spec, id int) (RecordFunc, error)
}

// RecordFunc converts the stored bytes src to dst, which has the length of the output. src may be
// the dataset's own mapped memory, so that writing to it would fault. A RecordFunc keeps neither
// slice, and should not allocate.
type RecordFunc func(dst, src []byte, r Record) error

// Record names the record that a RecordFunc works on.
type Record struct {
	Index    int // its number in the Source
	Position int // its place in the epoch, of all ranks
	Epoch    int
	Seed     uint64 // Options.Seed
	repeats  bool
}

// Rand returns the record's own random stream: a function of (seed, epoch, record), so that results
// are the same for any number of workers and ranks. If the Sampler may repeat a record within an
// epoch, the stream also depends on the position: otherwise all copies would be augmented alike.
func (r Record) Rand() transforms.Rand {
	n := uint64(r.Index)
	if r.repeats {
		n ^= permute.Mix64(uint64(r.Position) + 1)
	}
	return transforms.NewRand(r.Seed, uint64(r.Epoch), n)
}

// Collate is a function of the caller on whole batches: it mixes records with each other, changes
// fields in place, or makes new ones. The workers call it when all fields of a batch are complete.
// The zero value does nothing.
type Collate struct {
	Adds   []tensor.Spec                     // fields that it makes; Shape is the shape of one record
	Edits  []string                          // fields that it changes in place: these are always copied
	Worker func(id int) (CollateFunc, error) // returns the function that one goroutine will use, with its own state
	ID     string                            // what it does, so that Resume refuses another; may be empty
}

// CollateFunc works on one batch. It must keep nothing of d, whose memory is reused, and should not
// allocate. Its result must depend on d alone, since any worker may make any batch.
type CollateFunc func(d *MutableBatch) error

// add returns fields with the fields that c adds, and marks the fields that c edits: these must be
// copied, as the memory of the Source must not be written to.
func (c Collate) add(fields []fill.Field) ([]fill.Field, error) {
	if c.Worker == nil && len(c.Adds)+len(c.Edits) > 0 {
		return nil, fmt.Errorf("Collate adds %d fields and edits %d, but has no Worker", len(c.Adds), len(c.Edits))
	}
	at := func(name string) int {
		return slices.IndexFunc(fields, func(f fill.Field) bool { return f.Out.Name == name })
	}
	for _, name := range c.Edits {
		i := at(name)
		if i < 0 {
			return nil, fmt.Errorf("Collate edits the field %q, which batches do not have", name)
		}
		if fields[i].Ragged {
			return nil, fmt.Errorf("Collate edits the field %q, whose records have variable length; derive another "+
				"field from it by Adds", name)
		}
		fields[i].Edited = true
	}
	for _, spec := range c.Adds {
		if err := spec.Validate(); err != nil {
			return nil, fmt.Errorf("Collate: %w", err)
		}
		if spec.Ragged {
			return nil, fmt.Errorf("Collate adds the field %q as ragged; its records must have one length", spec.Name)
		}
		if at(spec.Name) >= 0 {
			return nil, fmt.Errorf("Collate adds the field %q, which batches have already; name it in Edits", spec.Name)
		}
		fields = append(fields, fill.Field{Out: spec, Size: spec.RecordBytes()})
	}
	return fields, nil
}

// MutableBatch is a batch that Collate works on, or that a [BatchFiller] made.
type MutableBatch struct {
	b     *fill.Batch
	seed  uint64
	world World
}

// mutable returns the view of b that Collate and BatchFiller work on.
func (c *setup) mutable(b *fill.Batch) MutableBatch {
	return MutableBatch{b: b, seed: c.opts.Seed, world: c.opts.World}
}

// Field returns the values of a field. Only the bytes of fields that Collate adds or edits
// may be written to.
func (d *MutableBatch) Field(name string) tensor.View { return d.b.Field(name) }

// Offsets returns where the rows of each record of a ragged field begin: see Batch.Offsets.
func (d *MutableBatch) Offsets(name string) []int64 { return d.b.Offsets(name) }

// Indices returns the numbers of the records in the Source.
func (d *MutableBatch) Indices() []int { return d.b.Indices() }

// Mask says which records are real, and not padding of the last batch: see Batch.Mask.
func (d *MutableBatch) Mask() []bool { return d.b.Mask() }

// Len returns the number of records.
func (d *MutableBatch) Len() int { return d.b.Len() }

// Epoch returns the number of the epoch.
func (d *MutableBatch) Epoch() int { return d.b.Epoch().Number }

// Step returns the number of the batch in its epoch.
func (d *MutableBatch) Step() int { return d.b.Step() }

// Rand returns the batch's own random stream: a function of (seed, epoch, step, rank).
func (d *MutableBatch) Rand() transforms.Rand {
	return transforms.NewRand(permute.Place(d.seed, draftKey), uint64(d.Epoch()), uint64(d.Step())*uint64(d.world.Size)+
		uint64(d.world.Rank))
}

// draftKey makes the random streams of batches differ from the streams of records with the same
// seed.
const draftKey = 0x6a09e667f3bcc909

// Arrays is the Transform of a field of numbers: a cast, a scale, one-hot vectors and whatever else
// the pipeline has. Records of variable length must come out with one length. Flips, turns and
// crops move the fields of a record alike if their pipelines have these operations in the same
// order.
type Arrays struct {
	Pipeline *transforms.ArrayPipeline
}

// Output returns type and shape of the arrays that the pipeline makes.
func (t Arrays) Output(in tensor.Spec) (tensor.Spec, error) {
	out, err := t.Pipeline.Output(in)
	if err == nil && out.Ragged && out.Content != tensor.Sparse {
		err = fmt.Errorf("records still have variable length: end the pipeline with PadTruncate")
	}
	return out, err
}

// Worker returns a function with its own ArrayRunner.
func (t Arrays) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	run, err := t.Pipeline.Runner(in)
	if err != nil {
		return nil, err
	}
	if !t.Pipeline.Random() {
		return func(dst, src []byte, _ Record) error { return run.Do(dst, src) }, nil
	}
	return func(dst, src []byte, r Record) error { return run.DoRandom(dst, src, r.Rand()) }, nil
}

// grown returns the function for records that stay sparse, whose length only the pipeline knows.
func (t Arrays) grown(in tensor.Spec) (growFunc, error) {
	run, err := t.Pipeline.Runner(in)
	if err != nil {
		return nil, err
	}
	return func(dst, src []byte, _ Record) ([]byte, error) { return run.Append(dst, src) }, nil
}

// grower is a Transform that makes records of any number of rows from some fields.
type grower interface {
	Transform
	grown(in tensor.Spec) (growFunc, error)
}

// growFunc is a RecordFunc that appends the rows of a record to dst.
type growFunc func(dst, src []byte, r Record) ([]byte, error)

// grows returns t as a grower if t makes records of any number of rows from the field in.
func grows(t Transform, in tensor.Spec) (grower, bool) {
	g, ok := t.(grower)
	_, arrays := t.(Arrays)
	return g, ok && (arrays || in.Content == tensor.Images)
}

// ID returns a digest of the pipeline's recipe.
func (t Arrays) ID() string {
	recipe, err := json.Marshal(t.Pipeline)
	if err != nil { // the pipeline was composed, so it has a recipe
		panic("loader: a pipeline without recipe: " + err.Error())
	}
	return digest.Of(string(recipe))
}
