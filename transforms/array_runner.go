package transforms

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// ArrayRunner does the work of an ArrayPipeline for one goroutine.
type ArrayRunner struct {
	p     *ArrayPipeline
	specs []tensor.Spec // what reaches each transform, and at last the output
	whole bool          // a transform makes another number of elements
	chunk [512]float64
	now   []float64 // a whole record, and
	next  []float64 // what a transform makes of it
}

// Runner returns a runner for records of the field in.
func (p *ArrayPipeline) Runner(in tensor.Spec) (*ArrayRunner, error) {
	r := &ArrayRunner{p: p, specs: []tensor.Spec{in}}
	if _, err := p.Output(in); err != nil {
		return nil, err
	}
	for _, t := range p.ts {
		out, err := t.Output(r.out())
		if err != nil {
			return nil, err
		}
		r.specs = append(r.specs, out)
		if _, ok := t.(ArrayRemaker); ok {
			r.whole = true
		}
	}
	return r, nil
}

func (r *ArrayRunner) in() tensor.Spec  { return r.specs[0] }
func (r *ArrayRunner) out() tensor.Spec { return r.specs[len(r.specs)-1] }

// OutputBytes returns the length of what becomes of a record of n bytes.
func (r *ArrayRunner) OutputBytes(n int) int {
	n /= r.in().DType.Size()
	for i, t := range r.p.ts {
		if t, ok := t.(ArrayRemaker); ok {
			n = t.Remade(n, r.specs[i])
		}
	}
	return n * r.out().DType.Size()
}

// Do writes what becomes of the record src to dst; both are little endian. src has the length
// of its spec, or is whole rows if that is Ragged, and dst has OutputBytes(len(src)). dst may
// be src if no transform is an ArrayRemaker and their elements have one size. An error of
// anything but these lengths is of the record alone; the content of dst is then arbitrary.
// Once it has seen a record as long, Do allocates nothing.
func (r *ArrayRunner) Do(dst, src []byte) error {
	in := r.in()
	if size := in.RecordBytes(); len(src) != size && !in.Ragged || len(src)%size != 0 {
		return fmt.Errorf("record of %d bytes; %v %v has %d", len(src), in.DType, in.Shape, size)
	}
	if want := r.OutputBytes(len(src)); len(dst) != want {
		return fmt.Errorf("room for %d bytes; the record will have %d", len(dst), want)
	}
	switch {
	case len(r.p.ts) == 0:
		copy(dst, src)
		return nil
	case r.whole:
		return r.doWhole(dst, src)
	}
	r.doChunks(dst, src)
	return nil
}

// doChunks takes that many elements at a time through all transforms.
func (r *ArrayRunner) doChunks(dst, src []byte) {
	from, to := r.in().DType, r.out().DType
	for first, n := 0, len(src)/from.Size(); first < n; first += len(r.chunk) {
		x := r.chunk[:min(len(r.chunk), n-first)]
		load(x, src[first*from.Size():], from)
		for i, t := range r.p.ts {
			t.Apply(x, first, r.specs[i])
			roundAll(x, r.specs[i+1].DType)
		}
		save(dst[first*to.Size():], x, to)
	}
}

// doWhole takes a whole record through one transform after the other.
func (r *ArrayRunner) doWhole(dst, src []byte) error {
	from := r.in().DType
	r.now = growNumbers(r.now, len(src)/from.Size())
	load(r.now, src, from)
	for i, t := range r.p.ts {
		if m, ok := t.(ArrayRemaker); ok {
			r.next = growNumbers(r.next, m.Remade(len(r.now), r.specs[i]))
			if err := m.Remake(r.next, r.now, r.specs[i]); err != nil {
				return fmt.Errorf("transform %s: %w", t.Op(), err)
			}
			r.now, r.next = r.next, r.now
		} else {
			t.Apply(r.now, 0, r.specs[i])
		}
		roundAll(r.now, r.specs[i+1].DType)
	}
	save(dst, r.now, r.out().DType)
	return nil
}

func growNumbers(x []float64, n int) []float64 {
	if cap(x) < n {
		return make([]float64, n)
	}
	return x[:n]
}
