package loader

import (
	"fmt"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
	"github.com/penstock/penstock/transforms/geometry"
)

// Masks is the Transform of masks that are image files, next to an image that Images decodes. It
// converts the masks' numbers to DType, by default uint8.
type Masks struct{ DType tensor.DType }

// Output refuses a field that lies on no image of the batch: only the image says how large the mask
// becomes.
func (t Masks) Output(in tensor.Spec) (tensor.Spec, error) {
	return in, fmt.Errorf("masks that are files are decoded with the image that they lie on: give that a Transform, "+
		"Images, and the field the content %q", tensor.Mask)
}

// Worker returns the error of Output.
func (t Masks) Worker(in tensor.Spec, _ int) (RecordFunc, error) {
	_, err := t.Output(in)
	return nil, err
}

// ID returns the name of the type with its parameter.
func (t Masks) ID() string { return "masks(" + t.DType.String() + ")" }

// mover is a Transform of images that other fields of a record follow: Images, and every type that
// embeds Images.
type mover interface {
	Transform
	geometry() *transforms.Pipeline
	options() Images
	sized() bool // its images vary in size
	joint(in tensor.Spec, m *geometry.Mover) (jointFunc, error)
}

var _ mover = Images{}

// jointFunc makes the record dst of an image from the stored record src. It also makes the records
// outs of the fields that move with the pixels of the image, such as boxes and masks, from their
// stored records ins: a geometry.Mover moves these as the pixels were moved.
//
// jointFunc returns dst, or longer memory instead of dst if the image's size is known only once the
// image is made.
type jointFunc func(dst, src []byte, outs, ins [][]byte, r Record) ([]byte, error)

func (t Images) geometry() *transforms.Pipeline { return t.Pipeline }

func (t Images) options() Images { return t }

func (t Images) sized() bool { return false }

// opener returns a Runner, and the function that turns a record into the Runner's input. For image
// files the function has its own decoder, since a decoder keeps memory between files.
func (t Images) opener(in tensor.Spec) (*transforms.Runner, func(src []byte) (transforms.Source, error), error) {
	if isEncoded(in) {
		return t.Pipeline.Runner(), t.fileOpener(), nil
	}
	info, err := t.info(in)
	if err != nil {
		return nil, nil, err
	}
	p, err := t.pipeline(info.Layout)
	if err != nil {
		return nil, nil, err
	}
	return p.Runner(), func(src []byte) (transforms.Source, error) { return transforms.SourceOf(info, src) }, nil
}

// joint returns a jointFunc with its own Runner. Boxes are read before the image is transformed,
// because some crops are chosen by them, and moved afterwards, when the crop is known.
func (t Images) joint(in tensor.Spec, m *geometry.Mover) (jointFunc, error) {
	run, open, err := t.opener(in)
	if err != nil {
		return nil, err
	}
	return func(dst, src []byte, outs, ins [][]byte, r Record) ([]byte, error) {
		boxes, err := m.Begin(ins)
		if err != nil {
			return dst, err
		}
		image, err := open(src)
		if err != nil {
			return dst, err
		}
		moves, err := run.DoMoves(dst, image, r.Rand(), boxes)
		if err != nil {
			return dst, err
		}
		_, err = m.Finish(moves, outs, ins)
		return dst, err
	}, nil
}

// lead enters which fields follow the pixels of which image, and what each follower becomes. A
// follower's own Transform comes after the move: its input is the moved field.
func (o Options) lead(fields []fill.Field, groups []geometry.Group) error {
	for _, g := range groups {
		image := &fields[g.Image]
		out := sizeOf(image.Out)
		padded := o.Transforms[image.In.Name].(mover).sized()
		if padded {
			out = transforms.Info{H: fill.Height, W: fill.Width}
		}
		for _, k := range g.Follows {
			f := &fields[k]
			moved := o.follower(f.In, padded).Output(out)
			f.Led, f.Converts, f.Out = true, true, moved
			if t := o.own(f.In); t != nil {
				if padded && f.In.Content == tensor.Mask {
					return fmt.Errorf("field %q: masks that PadImages pads take no other Transform than Masks", f.In.Name)
				}
				var err error
				if f.Out, err = t.Output(moved); err != nil {
					return fmt.Errorf("field %q: transform: %w", f.In.Name, err)
				}
			}
			if f.Ragged = f.Out.Ragged; f.Ragged {
				f.Size = 0
				if err := o.validateRagged(f.In); err != nil {
					return err
				}
			} else {
				f.Size = f.Out.RecordBytes()
			}
			image.Leads = append(image.Leads, k)
		}
	}
	return nil
}

// validateRagged returns an error for options that need records of one length.
func (o Options) validateRagged(spec tensor.Spec) error {
	if o.OnError == Blank {
		return fmt.Errorf("field %q: OnError Blank has no length for a record of variable length; take Backfill, or "+
			"transform by Pad", spec.Name)
	}
	return nil
}

// follower returns how a field follows an image; sized says that the image's size is known only
// once the image is made.
func (o Options) follower(in tensor.Spec, sized bool) geometry.Follower {
	m, _ := o.Transforms[in.Name].(Masks)
	return geometry.Follower{In: in, DType: m.DType, Sized: sized}
}

// own returns the Transform that works on a field after the field was moved; nil for none. Masks is
// part of the move itself.
func (o Options) own(in tensor.Spec) Transform {
	t := o.Transforms[in.Name]
	if _, is := t.(Masks); is {
		return nil
	}
	return t
}

// sizeOf returns width, height and channels of images that a Transform makes.
func sizeOf(s tensor.Spec) (out transforms.Info) {
	if len(s.Shape) != 3 {
		return out
	}
	if s.Layout == tensor.CHW {
		return transforms.Info{C: s.Shape[0], H: s.Shape[1], W: s.Shape[2]}
	}
	return transforms.Info{H: s.Shape[0], W: s.Shape[1], C: s.Shape[2]}
}

// jointFunc returns the function of a field that leads other fields: one RecordFunc transforms all
// of them. Followers with a Transform of their own are moved to scratch memory first, and
// transformed from there into the batch. The exchange of outs and scratch is undone after every
// record, so that the batch keeps its memory and the scratch memory grows only once.
func (c *setup) jointFunc(f *fill.Field, id int) (fill.JointFunc, error) {
	if t, ok := grows(c.opts.Transforms[f.In.Name], f.In); ok {
		do, err := t.grown(f.In)
		return func(dst, src []byte, _, _ [][]byte, r *fill.Record) ([]byte, error) {
			return do(dst[:0], src, c.record(r))
		}, err
	}
	t := c.opts.Transforms[f.In.Name].(mover)
	var follows []geometry.Follower
	var after []afterMove
	for k, at := range f.Leads {
		led := &c.plan.Fields[at]
		if led.Made() { // the sizes of images
			continue
		}
		follows = append(follows, c.opts.follower(led.In, f.Padding != nil))
		own := c.opts.own(led.In)
		if own == nil {
			continue
		}
		moved := follows[k].Output(sizeOf(f.Out))
		do, err := own.Worker(moved, id)
		if err != nil {
			return nil, err
		}
		a := afterMove{led: k, do: do}
		if !moved.Ragged {
			a.moved = make([]byte, moved.RecordBytes())
		}
		after = append(after, a)
	}
	do, err := t.joint(f.In, geometry.NewMover(t.geometry(), follows, t.options().MaxPixels))
	if err != nil {
		return nil, err
	}
	return func(dst, src []byte, outs, ins [][]byte, r *fill.Record) ([]byte, error) {
		record := c.record(r)
		for i := range after {
			a := &after[i]
			a.dst, outs[a.led] = outs[a.led], a.moved
		}
		dst, err := do(dst, src, outs, ins, record)
		if err != nil {
			return dst, err
		}
		for i := range after {
			a := &after[i]
			a.moved, outs[a.led] = outs[a.led], a.dst
			if err := a.do(a.dst, a.moved, record); err != nil {
				return dst, fmt.Errorf("%s: %w", follows[a.led].In.Name, err)
			}
		}
		return dst, nil
	}, nil
}

// afterMove is a follower's own Transform, which works on the moved field. moved is scratch memory
// of one worker.
type afterMove struct {
	led        int
	do         RecordFunc
	moved, dst []byte
}
