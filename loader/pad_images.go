package loader

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/padding"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
	"github.com/penstock/penstock/transforms/geometry"
)

// PadImages is Images for pipelines whose results have several sizes, such as pipelines with
// RandomShortestSize. The images of a batch, and the masks on them, are padded at the right and at
// the bottom to the largest of the batch; boxes and keypoints keep their coordinates. Batch.Field
// has another shape in each batch then, and the field that Sizes describes has height and width of
// each image.
type PadImages struct {
	Images
	Multiple int     // height and width of a batch are multiples of it; 0 means 1
	Fill     float64 // elements of images that are padded; must be exact in their type
	// elements of masks that are padded; nil means 255, the class that losses ignore; masks of instances have 0
	MaskFill *int
}

var _ mover = PadImages{}

// Output returns type and layout of the pipeline's result. The Shape has no axes, as each batch has
// its own.
func (t PadImages) Output(in tensor.Spec) (tensor.Spec, error) {
	if in.Content == tensor.Images {
		return tensor.Spec{}, errors.New("a record has any number of images, and PadImages pads one a record; have the " +
			"pipeline make one size, by Resize to height and width")
	}
	out, err := t.info(in)
	if err != nil {
		return tensor.Spec{}, err
	}
	if t.Multiple < 0 {
		return tensor.Spec{}, fmt.Errorf("PadImages to a multiple of %d pixels", t.Multiple)
	}
	if _, err := padding.Element(out.DType, t.Fill); err != nil {
		return tensor.Spec{}, err
	}
	return tensor.Spec{Name: in.Name, DType: out.DType, Shape: tensor.Shape{}, Ragged: true,
		Layout: axes(out.Layout)}, nil
}

// Sizes returns the added field of batches: height and width of each image before padding.
func (t PadImages) Sizes(in tensor.Spec) tensor.Spec {
	return tensor.Spec{Name: in.Name + "_sizes", DType: tensor.Int64, Shape: tensor.Shape{2}}
}

// info returns the pipeline's output. W and H are the first size that the pipeline accepts;
// a user of info must not rely on them.
func (t PadImages) info(in tensor.Spec) (out transforms.Info, err error) {
	p, sizes, channels := t.Pipeline, someSizes, 3
	if !isEncoded(in) {
		info, err := t.Images.info(in)
		if err != nil {
			return out, err
		}
		if p, err = t.pipeline(info.Layout); err != nil {
			return out, err
		}
		sizes, channels = [][2]int{{info.W, info.H}}, info.C
	}
	for _, size := range sizes {
		if out, err = p.Output(transforms.Info{W: size[0], H: size[1], C: channels}); err == nil {
			break
		}
	}
	if out.DType == tensor.Invalid {
		out.DType = tensor.Uint8
	}
	return out, err
}

// ID returns a digest of the pipeline's recipe and the other options.
func (t PadImages) ID() string {
	return digest.Of(t.Images.ID(), t.Multiple, t.Fill, t.maskFill())
}

func (t PadImages) maskFill() int {
	if t.MaskFill == nil {
		return 255
	}
	return *t.MaskFill
}

// Worker returns an error. A padded image depends on the other images of its batch, so that padding
// is no function of one record; Options handles PadImages itself.
func (t PadImages) Worker(tensor.Spec, int) (RecordFunc, error) {
	return nil, fmt.Errorf("PadImages makes whole batches, and works as a Transform of Options alone")
}

func (t PadImages) sized() bool { return true }

// padded sets how fields of images, and the masks that follow them, are padded, and appends a field
// of sizes for each.
func (o Options) padded(fields []fill.Field) ([]fill.Field, error) {
	for i := range fields {
		t, is := o.Transforms[fields[i].In.Name].(PadImages)
		if !is {
			continue
		}
		sizes := t.Sizes(fields[i].In)
		if slices.ContainsFunc(fields, func(f fill.Field) bool { return f.Out.Name == sizes.Name }) {
			return nil, fmt.Errorf("PadImages adds the field %q, which batches have already", sizes.Name)
		}
		if err := t.pad(fields, i, len(fields)); err != nil {
			return nil, fmt.Errorf("field %q: transform: %w", fields[i].In.Name, err)
		}
		fields[i].Leads = append(fields[i].Leads, len(fields))
		fields = append(fields, fill.Field{Out: sizes, Size: fill.SizeBytes, Led: true})
	}
	return fields, nil
}

// pad sets the padding of image field i and of the masks that follow it; sizes is the number of the
// field of sizes. Masks of instances are padded with 0, which is no instance; class masks with
// MaskFill.
func (t PadImages) pad(fields []fill.Field, i, sizes int) error {
	image := &fields[i]
	info, err := t.info(image.In)
	if err != nil {
		return err
	}
	value, err := padding.Element(image.Out.DType, t.Fill)
	if err != nil {
		return err
	}
	info.H, info.W = fill.Height, fill.Width
	multiple := max(1, t.Multiple)
	image.Padding = &fill.Padding{Shape: info.Shape(), Sizes: sizes, Multiple: multiple, Value: value}
	for _, k := range image.Leads {
		f := &fields[k]
		if f.In.Content != tensor.Mask {
			continue
		}
		p := fill.Padding{Shape: f.Out.Shape, Sizes: sizes, Multiple: multiple, Instances: f.Out.Ragged}
		number := float64(t.maskFill())
		if p.Instances {
			number = 0
		}
		if p.Value, err = padding.Element(f.Out.DType, number); err != nil {
			return fmt.Errorf("masks %q: %w", f.In.Name, err)
		}
		f.Padding, f.Ragged, f.Size = &p, true, 0
		f.Out.Ragged, f.Out.Shape = true, tensor.Shape{}
	}
	return nil
}

// joint returns a jointFunc with its own Runner and decoder. The last of the led fields is the
// field of sizes, which lies on no image and is written here. Images of one batch must agree in
// everything but their size, since they become one array.
func (t PadImages) joint(in tensor.Spec, m *geometry.Mover) (jointFunc, error) {
	run, open, err := t.opener(in)
	if err != nil {
		return nil, err
	}
	want, err := t.info(in)
	if err != nil {
		return nil, err
	}
	return func(dst, src []byte, outs, ins [][]byte, r Record) ([]byte, error) {
		last := len(outs) - 1
		boxes, err := m.Begin(ins[:last])
		if err != nil {
			return dst, err
		}
		image, err := open(src)
		if err != nil {
			return dst, err
		}
		dst, info, moves, err := run.DoSized(dst, image, r.Rand(), boxes)
		if err != nil {
			return dst, err
		}
		if want.H, want.W = info.H, info.W; info != want {
			return dst, fmt.Errorf("the pipeline makes %v, and %v of other images; make them alike, by RGB", info, want)
		}
		fill.PutSize(outs[last], info.H, info.W)
		if last == 0 {
			return dst, nil
		}
		if err := moves.Err(); err != nil {
			return dst, err
		}
		_, err = m.Finish(moves, outs[:last], ins[:last])
		return dst, err
	}, nil
}
