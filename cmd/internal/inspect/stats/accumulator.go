package stats

import (
	"context"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// accumulator adds up the records of a field, by channel and, if there are classes, by class. It
// serves one goroutine; merge joins the results.
type accumulator struct {
	channels []channelAccumulator
	classes  [][]moments.Moments // by class and channel; nil without classes

	// scratch counts the values of one record by channel, and buf holds the values of a channel:
	// both are reused for every record.
	scratch []byteCounts
	buf     []float64
}

// channelAccumulator adds up one channel: counts for elements of one byte, from which all
// statistics follow exactly, and moments for wider elements.
type channelAccumulator struct {
	counts  byteCounts
	moments moments.Moments
}

// classParts bounds the memory of the accumulators: the number of moments of classes in memory,
// over all parts, channels and classes.
const classParts = 1 << 20

// accumulate adds up a field in parallel. The parts are merged in their order, so the rounding of
// sums does not depend on the number of workers. With too many classes, statistics by class are
// left out; with many, there are fewer parts.
func (c *computation) accumulate(ctx context.Context, f store.Field) (*accumulator, error) {
	channels, _ := f.Channels()
	classes := len(c.labels.Values)
	if channels*classes > classParts/8 {
		classes = 0
	}
	count := max(1, min(64, c.ds.Len(), classParts/max(1, channels*classes)))
	parts := make([]*accumulator, count)
	err := dataset.InParts(ctx, c.ds.Len(), count, c.opts.Workers, func() func(context.Context, int, int, int) error {
		reader := dataset.NewBatchReader(c.ds, f)
		return func(ctx context.Context, part, a, b int) error {
			t := newAccumulator(channels, classes)
			parts[part] = t
			return reader.Each(ctx, a, b, func(s dataset.Batch) error {
				for i := range s.N {
					t.record(f, s.Record(i), c.classOf(s.First+i, classes))
				}
				c.progress(s.N)
				return nil
			})
		}
	})
	if err != nil {
		return nil, err
	}
	for _, t := range parts[1:] {
		parts[0].merge(t)
	}
	return parts[0], nil
}

// classOf returns the index of a record's class, -1 without statistics by class.
func (c *computation) classOf(record, classes int) int {
	if classes == 0 {
		return -1
	}
	return c.labels.Class[record]
}

// newAccumulator returns an empty accumulator.
func newAccumulator(channels, classes int) *accumulator {
	t := &accumulator{channels: make([]channelAccumulator, channels), scratch: make([]byteCounts, channels)}
	if classes > 0 {
		t.classes = make([][]moments.Moments, classes)
		for i := range t.classes {
			t.classes[i] = make([]moments.Moments, channels)
		}
	}
	return t
}

// merge adds the result of the part after t.
func (t *accumulator) merge(o *accumulator) {
	for i := range t.channels {
		for k, n := range o.channels[i].counts {
			t.channels[i].counts[k] += n
		}
		t.channels[i].moments.Merge(o.channels[i].moments)
	}
	for i := range t.classes {
		for k := range t.classes[i] {
			t.classes[i][k].Merge(o.classes[i][k])
		}
	}
}

// record adds a record of class number class, -1 for none.
func (t *accumulator) record(f store.Field, v tensor.View, class int) {
	if f.DType.Size() == 1 {
		t.bytes(f, v.Bytes(), class)
		return
	}
	x := dataset.Floats(v)
	for c := range t.channels {
		m := moments.Of(t.channel(f, x, c))
		t.channels[c].moments.Merge(m)
		if class >= 0 {
			t.classes[class][c].Merge(m)
		}
	}
}

// bytes adds a record with elements of one byte. channels interleave in runs of `run` elements: a
// run is a plane in CHW and one element in HWC.
func (t *accumulator) bytes(f store.Field, b []byte, class int) {
	clear(t.scratch)
	channels, run := f.Channels()
	if channels == 1 {
		t.scratch[0].add(b)
	}
	for c := 0; channels > 1 && len(b) > 0; c = (c + 1) % channels {
		t.scratch[c].add(b[:run])
		b = b[run:]
	}
	for c := range t.scratch {
		for k, n := range t.scratch[c] {
			t.channels[c].counts[k] += n
		}
		if class >= 0 {
			t.classes[class][c].Merge(t.scratch[c].moments(f.DType == tensor.Int8))
		}
	}
}

// channel returns the values of channel c of a record, valid until the next call.
func (t *accumulator) channel(f store.Field, x []float64, c int) []float64 {
	channels, run := f.Channels()
	if channels == 1 {
		return x
	}
	t.buf = t.buf[:0]
	for at := c * run; at < len(x); at += channels * run {
		t.buf = append(t.buf, x[at:at+run]...)
	}
	return t.buf
}

// histograms reads the values of a field again: the bins of a histogram need the limits, which are
// known only after the first pass.
func (c *computation) histograms(ctx context.Context, f store.Field, out *FieldStats) error {
	empty := func() []Histogram {
		return dataset.Map(out.Channels, func(s ChannelStats) Histogram {
			return newHistogram(s.Min, s.Max, numbers(!f.DType.IsFloat()))
		})
	}
	parts := make([][]Histogram, max(1, min(64, c.ds.Len())))
	err := dataset.InParts(ctx, c.ds.Len(), len(parts), c.opts.Workers, func() func(context.Context, int, int, int) error {
		reader, t := dataset.NewBatchReader(c.ds, f), &accumulator{}
		return func(ctx context.Context, part, a, b int) error {
			parts[part] = empty()
			return reader.Each(ctx, a, b, func(s dataset.Batch) error {
				for i := range s.N {
					x := dataset.Floats(s.Record(i))
					for k := range parts[part] {
						parts[part][k].add(t.channel(f, x, k))
					}
				}
				c.progress(s.N)
				return nil
			})
		}
	})
	if err != nil {
		return err
	}
	for k := range out.Channels {
		sum := empty()[k]
		for _, p := range parts {
			for i, n := range p[k].Counts {
				sum.Counts[i] += n
			}
		}
		out.Channels[k].Histogram = &sum
	}
	return nil
}
