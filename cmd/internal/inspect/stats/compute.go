package stats

import (
	"context"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// computation computes the statistics of one dataset.
type computation struct {
	ds     *mmapds.Dataset
	opts   Options
	labels Classes
}

// work returns the total of the progress: the values of records that will be read. Fields of wider
// elements are read twice, see histograms.
func (c *computation) work() (n int64) {
	for _, f := range c.ds.Schema().Fields {
		n += int64(c.ds.Len())
		if !f.IsBytes() && f.DType.Size() > 1 {
			n += int64(c.ds.Len())
		}
	}
	return n
}

// progress reports n more values of records.
func (c *computation) progress(n int) {
	if c.opts.Progress != nil {
		c.opts.Progress(int64(n))
	}
}

// field computes the statistics of one field.
func (c *computation) field(ctx context.Context, f store.Field) (out FieldStats, err error) {
	out = statsOf(f)
	if f.Ragged {
		lengths, err := c.lengths(ctx, f)
		if err != nil {
			return out, err
		}
		out.Lengths = &lengths
	}
	if f.IsBytes() {
		c.progress(c.ds.Len())
		return out, nil
	}
	if c.labels.field != nil && f.Name == c.labels.field.Name {
		out.Labels = c.labels.Values
	}
	if f.Content == tensor.Boxes {
		found, err := dataset.BoxesOf(ctx, c.ds, f)
		if err != nil {
			return out, err
		}
		out.Boxes = newBoxStats(found)
	}
	if f.Ragged && f.Classes != nil {
		if out.Labels, err = c.instances(ctx, f); err != nil {
			return out, err
		}
	}
	sum, err := c.accumulate(ctx, f)
	if err != nil {
		return out, err
	}
	c.fill(&out, f, sum)
	if f.DType.Size() > 1 {
		err = c.histograms(ctx, f, &out)
	}
	return out, err
}

// fill sets the statistics from the sums.
func (c *computation) fill(out *FieldStats, f store.Field, sum *accumulator) {
	all := moments.Moments{}
	for i := range sum.channels {
		ch := &sum.channels[i]
		s := ChannelStats{Name: "all"}
		if len(sum.channels) > 1 {
			s.Name = dataset.ChannelName(i, len(sum.channels))
		}
		if f.DType.Size() == 1 {
			ch.moments = ch.counts.moments(f.DType == tensor.Int8)
			h := ch.counts.histogram(f.DType)
			s.Histogram = &h
		}
		s.Moments = dataset.Moments(ch.moments)
		all.Merge(ch.moments)
		out.Channels = append(out.Channels, s)
	}
	total := dataset.Moments(all)
	out.Moments = &total
	if sum.classes == nil || out.Labels != nil {
		return
	}
	out.ClassField = c.labels.field.Name
	for i, channels := range sum.classes {
		out.Classes = append(out.Classes,
			ClassStats{Label: c.labels.Values[i], Channels: dataset.Map(channels, dataset.Moments)})
	}
}

// lengths returns how many rows the records of a ragged field have. Only offsets are read, not
// values.
func (c *computation) lengths(ctx context.Context, f store.Field) (LengthStats, error) {
	n := c.ds.Len()
	lengths := make([]float64, 0, n)
	indices, offsets := make([]int, 0, dataset.LabelStep), make([]int64, dataset.LabelStep+1)
	for a := 0; a < n; a += dataset.LabelStep {
		indices = indices[:0]
		for i := a; i < min(n, a+dataset.LabelStep); i++ {
			indices = append(indices, i)
		}
		if err := c.ds.Lengths(ctx, f.Name, indices, offsets[:len(indices)+1]); err != nil {
			return LengthStats{}, err
		}
		for k := range indices {
			lengths = append(lengths, float64(offsets[k+1]-offsets[k]))
		}
	}
	m := moments.Of(lengths)
	h := newHistogram(m.Min, m.Max, wholeNumbers)
	h.add(lengths)
	return LengthStats{Moments: dataset.Moments(m), Histogram: &h}, nil
}

// instances counts the rows of each class in a ragged field of labels, such as the labels of boxes.
func (c *computation) instances(ctx context.Context, f store.Field) (list []Label, err error) {
	counts := make([]int64, len(f.Classes))
	err = dataset.NewBatchReader(c.ds, f).Each(ctx, 0, c.ds.Len(), func(b dataset.Batch) error {
		for rows := b.Values.Bytes(); len(rows) > 0; rows = rows[f.DType.Size():] {
			if class, ok := f.DType.Read(rows).Int64(); ok && class >= 0 && class < int64(len(counts)) {
				counts[class]++
			}
		}
		return nil
	})
	for i, n := range counts {
		list = append(list, Label{Value: int64(i), Name: dataset.ClassName(f, int64(i)), Records: n})
	}
	return list, err
}
