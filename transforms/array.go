package transforms

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/pixel"
	"github.com/penstock/penstock/tensor"
)

// An ArrayTransform is one operation of an ArrayPipeline, for fields that are not images. It
// is a value with its parameters as exported fields, like a Transform, and may have a method
// Resolve as that.
type ArrayTransform interface {
	// Output returns the spec of the transformed field, or an error that says why the transform cannot work on it.
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

	// Remade returns how many elements Remake makes from n elements of a record of the field in.
	Remade(n int, in tensor.Spec) int

	// Remake fills dst from all elements of a record, or returns why that record cannot be used. It
	// sets every element of dst.
	Remake(dst, src []float64, in tensor.Spec) error
}

// ArrayPipeline is a list of operations on the numbers of a field: cast, scale, standardise, clip,
// logarithm, one-hot, reshape, pad or truncate, fill, flip, turn, crop, noise. Operations compute
// in float64, which is exact for all types but integers beyond 2^53; numbers that are only moved
// are copied as bytes and keep all bits. An ArrayPipeline never changes. Any number of goroutines
// may use it, each with its own ArrayRunner.
type ArrayPipeline struct{ ts []ArrayTransform }

// ComposeArray returns the pipeline that applies ts in order. The error joins everything that is
// wrong with their parameters.
func ComposeArray(ts ...ArrayTransform) (*ArrayPipeline, error) {
	p := &ArrayPipeline{ts: make([]ArrayTransform, len(ts))}
	var errs []error
	for i, t := range ts {
		r, err := resolve(t)
		if err != nil {
			errs = append(errs, fmt.Errorf("transform %s: %w", opName(t), err))
		}
		p.ts[i] = r
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// maxElements bounds the output of a transform for a record, or for a row of a ragged record: 16
// GiB as the float64 that the transforms compute with. A typing error in a recipe should be an
// error, not an allocation that kills the process.
const maxElements = 1 << 31

// Output returns the field that the pipeline turns a field into.
func (p *ArrayPipeline) Output(in tensor.Spec) (tensor.Spec, error) {
	if err := in.Validate(); err != nil {
		return in, err
	}
	for _, t := range p.ts {
		out, err := t.Output(in)
		err = cmp.Or(checkSparse(t, in), err)
		if len(out.Dims) != len(out.Shape)+1 || out.Ragged {
			out.Dims = nil
		}
		if err == nil {
			err = out.Validate()
		}
		if err == nil && out.RecordBytes()/out.DType.Size() > maxElements {
			err = fmt.Errorf("makes records of shape %v; at most %d elements are possible", out.Shape, maxElements)
		}
		if err != nil {
			return out, fmt.Errorf("transform %s: %w", opName(t), err)
		}
		in = out
	}
	return in, nil
}

// Random reports whether a transform draws random numbers, so that DoRandom is needed.
func (p *ArrayPipeline) Random() bool {
	return slices.ContainsFunc(p.ts, func(t ArrayTransform) bool { _, ok := t.(ArrayRandom); return ok })
}

// MarshalJSON writes the recipe, in the form of a Pipeline's recipe.
func (p *ArrayPipeline) MarshalJSON() ([]byte, error) { return marshalRecipe(p.ts) }

// ParseArray reads the JSON that MarshalJSON writes.
func ParseArray(recipe []byte) (*ArrayPipeline, error) {
	ts, err := parseRecipe(recipe, arrayRegistry)
	if err != nil {
		return nil, err
	}
	return ComposeArray(ts...)
}

// arrayRegistry has the array operations by their names in recipes.
var arrayRegistry = map[string]decoder[ArrayTransform]{
	"Cast":        decode[ArrayTransform, Cast],
	"Scale":       decode[ArrayTransform, Scale],
	"Standardize": decode[ArrayTransform, Standardize],
	"Clip":        decode[ArrayTransform, Clip],
	"Log1p":       decode[ArrayTransform, Log1p],
	"OneHot":      decode[ArrayTransform, OneHot],
	"Reshape":     decode[ArrayTransform, Reshape],
	"PadTruncate": decode[ArrayTransform, PadTruncate],

	"Log":               decode[ArrayTransform, Log],
	"FillNaN":           decode[ArrayTransform, FillNaN],
	"IsFinite":          decode[ArrayTransform, IsFinite],
	"RandomFlip":        decode[ArrayTransform, RandomFlip],
	"RandomRot90":       decode[ArrayTransform, RandomRot90],
	"RandomSpatialCrop": decode[ArrayTransform, RandomSpatialCrop],
	"CenterSpatialCrop": decode[ArrayTransform, CenterSpatialCrop],
	"RandomNoise":       decode[ArrayTransform, RandomNoise],
}

// ArrayRunner applies an ArrayPipeline for one goroutine. Its buffers grow to the longest record,
// and are reused. A pipeline whose transforms all work element by element goes through chunk, 512
// elements at a time, which stay in the CPU's cache between transforms. Only transforms that change
// the number or the order of elements need a whole record in memory.
type ArrayRunner struct {
	ts    []ArrayTransform
	specs []tensor.Spec // what reaches each transform, and at last the output
	whole bool          // a transform makes another number of elements
	chunk [512]float64
	now   []float64 // a whole record, and
	next  []float64 // the output of a transform for it
	moved []byte    // a record whose elements were put elsewhere
	place placement
}

// Runner returns a runner for records of the field in.
func (p *ArrayPipeline) Runner(in tensor.Spec) (*ArrayRunner, error) {
	r := &ArrayRunner{specs: []tensor.Spec{in}}
	if _, err := p.Output(in); err != nil {
		return nil, err
	}
	for _, t := range p.ts {
		out, err := t.Output(r.out())
		if err != nil {
			return nil, err
		}
		if len(out.Dims) != len(out.Shape)+1 || out.Ragged {
			out.Dims = nil
		}
		if bound, ok := t.(boundTransform); ok {
			t = bound.bind(r.out())
		}
		r.ts, r.specs = append(r.ts, t), append(r.specs, out)
		if _, ok := t.(ArrayRemaker); ok {
			r.whole = true
		}
	}
	return r, nil
}

func (r *ArrayRunner) in() tensor.Spec  { return r.specs[0] }
func (r *ArrayRunner) out() tensor.Spec { return r.specs[len(r.specs)-1] }

// OutputBytes returns the bytes that a record of n bytes has after the transforms.
func (r *ArrayRunner) OutputBytes(n int) int {
	n /= r.in().DType.Size()
	for i, t := range r.ts {
		if t, ok := t.(ArrayRemaker); ok {
			n = t.Remade(n, r.specs[i])
		}
	}
	return n * r.out().DType.Size()
}

// Do transforms the record src into dst; both are little endian. src has the length of its spec, or
// is whole rows if the spec is Ragged, and dst has OutputBytes(len(src)). dst may be src if no
// transform is an ArrayRemaker and the types of input and output have one size. An error about
// anything other than these lengths concerns this record alone, and leaves dst arbitrary. Do
// allocates only for a record that is longer than all before it.
func (r *ArrayRunner) Do(dst, src []byte) error {
	in := r.in()
	if size := in.RecordBytes(); len(src) != size && !in.Ragged || len(src)%size != 0 {
		return fmt.Errorf("record of %d bytes; %v %v has %d", len(src), in.DType, in.Shape, size)
	}
	if want := r.OutputBytes(len(src)); len(dst) != want {
		return fmt.Errorf("room for %d bytes; the record will have %d", len(dst), want)
	}
	switch {
	case len(r.ts) == 0:
		copy(dst, src)
		return nil
	case r.whole:
		return r.doWhole(dst, src, nil)
	}
	r.doChunks(dst, src)
	return nil
}

// DoRandom is Do for a pipeline that draws, with the random stream of the record.
func (r *ArrayRunner) DoRandom(dst, src []byte, rnd Rand) error {
	if !r.whole {
		return r.Do(dst, src)
	}
	if want := r.OutputBytes(len(src)); len(dst) != want {
		return fmt.Errorf("room for %d bytes; the record will have %d", len(dst), want)
	}
	return r.doWhole(dst, src, &rnd)
}

// stream returns the random stream of the i-th transform. A transform that moves elements is numbered among the moving
// transforms only, so that all fields of a record are moved by the same draws whatever other transforms they have.
func (r *ArrayRunner) stream(rnd Rand, i int, t ArrayRandom) Rand {
	key := mix(uint64(i)) ^ nameKey(r.in().Name)
	if t.Moves() {
		key = 0
		for _, t := range r.ts[:i] {
			if t, ok := t.(ArrayRandom); ok && t.Moves() {
				key++
			}
		}
	}
	return Rand{state: mix(rnd.Uint64() ^ mix(key))}
}

// nameKey is the FNV-1a hash of a field's name. Transforms that do not move elements draw by it, so
// that noise on two fields of a record differs.
func nameKey(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// doChunks takes one chunk of elements after the other through all transforms. Every transform's
// result is rounded to its declared type: fusing transforms must not change the values that each of
// them promises.
func (r *ArrayRunner) doChunks(dst, src []byte) {
	from, to := r.in().DType, r.out().DType
	for first, n := 0, len(src)/from.Size(); first < n; first += len(r.chunk) {
		x := r.chunk[:min(len(r.chunk), n-first)]
		load(x, src[first*from.Size():], from)
		for i, t := range r.ts {
			t.Apply(x, first, r.specs[i])
			roundAll(x, r.specs[i+1].DType)
		}
		save(dst[first*to.Size():], x, to)
	}
}

// doWhole takes a whole record through one transform after the other. Consecutive moves (flips,
// turns, crops) are composed to one copy. Moves at the beginning or at the end of the pipeline copy
// bytes of the stored type, without a conversion to float64.
func (r *ArrayRunner) doWhole(dst, src []byte, rnd *Rand) error {
	first, err := r.moves(0, rnd)
	if err != nil {
		return err
	}
	size := r.in().DType.Size()
	if first == len(r.ts) {
		r.place.bytes(dst, src, size)
		return nil
	}
	if first > 0 {
		r.moved = pixel.Grow(r.moved, r.specs[first].RecordBytes())
		r.place.bytes(r.moved, src, size)
		src = r.moved
	}
	if r.in().Content == tensor.Sparse {
		pairs, next, err := r.sparse(src)
		if err != nil {
			return err
		}
		if next == len(r.ts)-1 && r.out().DType == tensor.Float32 { // ToDense
			scatter(dst, pairs)
			return nil
		}
		r.now, first = pairs, next
	} else {
		r.now = pixel.Grow(r.now, len(src)/size)
		load(r.now, src, r.in().DType)
	}
	for i := first; i < len(r.ts); i++ {
		end, err := r.moves(i, rnd)
		switch {
		case err != nil:
			return err
		case end == len(r.ts) && end > i:
			size := r.out().DType.Size()
			r.moved = pixel.Grow(r.moved, r.specs[i].RecordBytes())
			save(r.moved, r.now, r.out().DType)
			r.place.bytes(dst, r.moved, size)
			return nil
		case end > i:
			r.next = pixel.Grow(r.next, r.specs[end].Shape.Elems())
			r.place.floats(r.next, r.now)
			r.now, r.next = r.next, r.now
			i = end - 1
		default:
			if err := r.one(i, rnd); err != nil {
				return err
			}
		}
	}
	save(dst, r.now, r.out().DType)
	return nil
}

// moves composes the moves from transform i on into r.place, and returns the number of the first
// transform after them. Composed moves copy each element once, however many moves there are.
func (r *ArrayRunner) moves(i int, rnd *Rand) (end int, err error) {
	if i < len(r.ts) && !r.specs[i].Ragged {
		r.place.reset(r.specs[i].Shape)
	}
	for ; i < len(r.ts); i++ {
		t, ok := r.ts[i].(arrayMover)
		if !ok {
			break
		}
		var own Rand
		if random, draws := r.ts[i].(ArrayRandom); draws && rnd == nil {
			err = errDraws
		} else if draws {
			own = r.stream(*rnd, i, random)
		}
		if err == nil {
			err = t.move(&r.place, r.specs[i], &own)
		}
		if err != nil {
			return i, fmt.Errorf("transform %s: %w", opName(t), err)
		}
	}
	return i, nil
}

// one takes the record in r.now through transform i. Two buffers alternate, because a remaking
// transform cannot work in place.
func (r *ArrayRunner) one(i int, rnd *Rand) error {
	t := r.ts[i]
	if m, ok := t.(ArrayRemaker); ok {
		r.next = pixel.Grow(r.next, m.Remade(len(r.now), r.specs[i]))
		if err := r.remake(m, i, rnd); err != nil {
			return fmt.Errorf("transform %s: %w", opName(t), err)
		}
		r.now, r.next = r.next, r.now
	} else {
		t.Apply(r.now, 0, r.specs[i])
	}
	roundAll(r.now, r.specs[i+1].DType)
	return nil
}

// remake has transform i compute r.next from r.now.
func (r *ArrayRunner) remake(m ArrayRemaker, i int, rnd *Rand) error {
	if t, ok := m.(ArrayRandom); ok && rnd != nil {
		return t.RemakeRandom(r.next, r.now, r.specs[i], r.stream(*rnd, i, t))
	}
	return m.Remake(r.next, r.now, r.specs[i])
}

// load converts stored numbers of type dt to float64; the usual types have kernels.
func load(x []float64, b []byte, dt tensor.DType) {
	switch dt {
	case tensor.Uint8:
		kernel.FromBytes(x, b)
	case tensor.Float32:
		kernel.FromF32(x, b)
	default:
		tensor.Floats(x, dt, b, 1)
	}
}

// save stores float64 numbers as type dt.
func save(b []byte, x []float64, dt tensor.DType) {
	if dt == tensor.Float32 {
		kernel.ToF32(b, x)
		return
	}
	tensor.PutFloats(b, dt, x)
}

// roundAll rounds each element of x to a value of dt. Integers saturate: a value beyond the type's
// limits becomes the limit.
func roundAll(x []float64, dt tensor.DType) {
	switch dt {
	case tensor.Float64:
	case tensor.Float32:
		kernel.RoundF32(x)
	default:
		for i, v := range x {
			x[i] = dt.Saturate(v)
		}
	}
}
