package preprocess

import (
	"fmt"

	"github.com/penstock/penstock/internal/decode"
	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// fieldJobs returns how each field of the source becomes one of the dataset.
func (c Config) fieldJobs(fields []source.Field) (jobs []fieldJob, err error) {
	for _, f := range fields {
		j, err := c.fieldJob(f)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func (c Config) fieldJob(f source.Field) (fieldJob, error) {
	switch {
	case f.Image() && c.KeepEncoded:
		return keepField{copyField{f}, c.decodes}, nil
	case f.Image():
		return c.imageField(f)
	case f.Layout != "" && c.changesPixels():
		return c.pixelField(f)
	}
	return copyField{f}, nil
}

// decodes returns a decoder of files.
func (c Config) decodes() opener {
	return &fileOpener{decode.New(c.decoder()), rules(c.Rules)}
}

// imageField returns the job for files of images.
func (c Config) imageField(f source.Field) (fieldJob, error) {
	c = c.images()
	p, err := c.pipeline()
	if err != nil {
		return nil, err
	}
	return &imageField{
		pipeline: p, opener: c.decodes,
		field: func(out transforms.Info) store.Field { return c.field(f.Name, out) },
	}, nil
}

// pixelField returns the job for arrays of pixels.
func (c Config) pixelField(f source.Field) (fieldJob, error) {
	info := pixels(f.Field)
	if f.DType != tensor.Uint8 || len(f.Shape) != 3 || info.C != 1 && info.C != 3 {
		return nil, fmt.Errorf("%v of shape %v: only uint8 pixels with 1 or 3 channels can be resized, cropped, converted or normalized as images", f.DType, f.Shape)
	}
	if c.Layout == "" {
		c.Layout = f.Layout
	}
	c = c.images()
	p, err := c.pipeline(recolor(c.Color, info.C)...)
	if err != nil {
		return nil, err
	}
	return &imageField{
		pipeline: p, opener: func() opener { return pixelOpener{info} },
		field: func(out transforms.Info) store.Field { return c.field(f.Name, out) },
	}, nil
}

// recolor returns the transform that gives pixels the channels that were asked for.
func recolor(color string, channels int) []transforms.Transform {
	switch {
	case color == "gray" && channels == 3:
		return []transforms.Transform{transforms.Grayscale{}}
	case color == "rgb" && channels == 1:
		return []transforms.Transform{transforms.RGB{}}
	}
	return nil
}

// pixels describes the records of a field with a layout.
func pixels(f store.Field) transforms.Info {
	if len(f.Shape) != 3 {
		return transforms.Info{}
	}
	s := f.Shape
	if f.Layout == store.CHW {
		return transforms.Info{C: s[0], H: s[1], W: s[2], Layout: transforms.CHW}
	}
	return transforms.Info{H: s[0], W: s[1], C: s[2], Layout: transforms.HWC}
}

// field returns the field of a dataset whose images come out of the pipeline like that.
func (c Config) field(name string, out transforms.Info) store.Field {
	f := store.NewField(name, c.DType, out.Shape()...)
	f.Layout = c.Layout
	switch {
	case c.DType != tensor.Uint8:
		f.Normalization = c.Normalize.field(out.C, true)
	case c.Normalize.Mean != nil:
		f.Normalization = c.Normalize.field(out.C, false)
	}
	return f
}
