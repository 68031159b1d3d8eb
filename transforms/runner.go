package transforms

import (
	"errors"
	"fmt"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/tensor"
)

// Runner does the work of a Pipeline for one goroutine. It owns scratch memory, which grows to the
// largest image so far: some input rows for each resize, and a whole image between two operations
// that cannot be fused. From then on a Runner allocates nothing.
type Runner struct {
	p       *Pipeline
	plan    Plan
	planned Info // input that plan is for; the zero Info means none
	scan    scan
	weights weightCache
	between [2]Image
	other   Image // result of an ImageOp
	sums    []float64
	mixer   mixer
	norm    kernel.Norm
	normFor store
}

// Runner returns a new Runner of the pipeline.
func (p *Pipeline) Runner() *Runner {
	r := &Runner{p: p}
	r.scan.init(&r.weights)
	return r
}

// Do writes the record that the pipeline makes from src to dst, which must have the length of
// Output(InfoOf(src)). For float types dst must be aligned to an element. After an error the
// content of dst is arbitrary. A random pipeline needs DoRand.
func (r *Runner) Do(dst []byte, src Source) error {
	if r.p.random {
		return errors.New("transforms: the pipeline is random: use DoRand, which takes the record's random stream")
	}
	return r.DoRand(dst, src, Rand{})
}

// DoMoves is DoRand for an image with labels, and returns how masks, boxes and keypoints move.
// boxes lie on the image, each as left, top, right, bottom, and RandomIoUCrop chooses its crop by
// them; nil means that there are no boxes. The Moves is valid until the next call.
func (r *Runner) DoMoves(dst []byte, src Source, rnd Rand, boxes []float32) (*Moves, error) {
	m, err := r.Moves(InfoOf(src), rnd, boxes)
	if err != nil {
		return nil, err
	}
	return m, r.do(dst, src)
}

// Moves is DoMoves without pixels, for an image that in describes. The boxes are not kept: they
// belong to the caller.
func (r *Runner) Moves(in Info, rnd Rand, boxes []float32) (*Moves, error) {
	r.plan.boxes = boxes
	err := r.prepare(in, rnd)
	r.plan.boxes = nil
	m := &r.plan.moves
	if err == nil {
		err = m.Err()
	}
	return m, err
}

// DoSized is DoMoves for a pipeline whose images have several sizes. It returns the record in dst's
// memory, or in new memory if dst is too short, with the record's Info. Moves.Err says whether
// labels can follow.
func (r *Runner) DoSized(dst []byte, src Source, rnd Rand, boxes []float32) ([]byte, Info, *Moves, error) {
	r.plan.boxes = boxes
	err := r.prepare(InfoOf(src), rnd)
	r.plan.boxes = nil
	if err != nil {
		return dst, Info{}, nil, err
	}
	if n := r.plan.info.Bytes(); cap(dst) < n {
		dst = make([]byte, n)
	} else {
		dst = dst[:n]
	}
	return dst, r.plan.info, &r.plan.moves, r.do(dst, src)
}

// DoRand is Do with the random stream of the record.
func (r *Runner) DoRand(dst []byte, src Source, rnd Rand) error {
	if err := r.prepare(InfoOf(src), rnd); err != nil {
		return err
	}
	return r.do(dst, src)
}

// do runs the passes of the plan into dst, then the erasures and the matrix, which work on the
// finished record.
func (r *Runner) do(dst []byte, src Source) error {
	if want := r.plan.info.Bytes(); len(dst) != want {
		return fmt.Errorf("output %v has %d bytes, and the record %d; make inputs one size, by Resize and CenterCrop",
			r.plan.info, want, len(dst))
	}
	t := r.target(dst)
	if err := r.run(t, src); err != nil {
		return err
	}
	r.erase(t)
	r.multiply(t.f32)
	return nil
}

// run takes the short way for stored planes if the plan allows it, and all passes otherwise.
func (r *Runner) run(t target, src Source) error {
	if m, ok := src.(*Planar); ok {
		if done, err := r.planar(t, m); done {
			return err
		}
	}
	return r.runPasses(t, src)
}

// runPasses runs all passes, each on the result of the pass before. Two images alternate
// as intermediate results, and the last pass writes to t directly.
func (r *Runner) runPasses(t target, src Source) error {
	last := len(r.plan.passes) - 1
	for i := range r.plan.passes[:last] {
		p, out := &r.plan.passes[i], &r.between[i%2]
		out.Reshape(p.outW(), p.outH(), p.c)
		if err := r.scan.run(p, src, target{dst: out.Pix, dtype: tensor.Uint8}); err != nil {
			return err
		}
		for i := p.ops[0]; i < p.ops[1]; i++ {
			r.call(&r.plan.ops[i], out)
		}
		src = out
	}
	return r.scan.run(&r.plan.passes[last], src, t)
}

// call applies one image operation. Mixing steps need the mixer, which lives longer than one
// operation.
func (r *Runner) call(c *opCall, m *Image) {
	if c.mix != 0 {
		r.mixer.do(m, c.mix, float32(c.args[0]))
		return
	}
	c.op(m, &r.other, c.args)
}

// prepare plans the work, unless the last plan fits: a pipeline that draws nothing has the same
// plan for all images of one size. A failed plan is forgotten, because the plan is half built then.
func (r *Runner) prepare(in Info, rnd Rand) error {
	if in == r.planned && !r.p.random {
		return nil
	}
	r.planned = Info{}
	if err := r.p.build(&r.plan, in, rnd); err != nil {
		return err
	}
	r.planned = in
	if s := r.plan.store; s.dtype != tensor.Uint8 && s != r.normFor {
		var mean, std []float32
		if s.normal {
			mean, std = s.mean[:], s.std[:]
		}
		r.norm.Init(s.dtype, s.scale, mean, std)
		r.normFor = s
	}
	return nil
}

// target returns dst as elements of the record's type.
func (r *Runner) target(dst []byte) target {
	s := r.plan.store
	t := target{dtype: s.dtype, layout: s.layout, norm: &r.norm}
	switch s.dtype {
	case tensor.Float32:
		t.f32 = tensor.Elements[float32](dst)
	case tensor.Float16, tensor.BFloat16:
		t.u16 = tensor.Elements[uint16](dst)
	default:
		t.dst = dst
	}
	return t
}
