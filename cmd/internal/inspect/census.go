package inspect

import (
	"cmp"
	"context"
	"slices"

	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// census computes statistics from the values.
type census struct {
	ds     *mmapds.Dataset
	opts   StatsOptions
	labels *store.Field // nil if there is none
	class  []int        // of each record, as a position in values; nil if there are no classes
	values []Label      // labels with their records, the smallest first
}

// mostClasses is how many different numbers a field may have to be one of labels.
const mostClasses = 10_000

// readLabels finds the classes of the records.
func (c *census) readLabels(ctx context.Context) error {
	s := &shoot{ds: c.ds}
	if err := s.chooseLabels(); err != nil || s.labels == nil {
		return err
	}
	numbers, err := s.readLabels(ctx)
	if err != nil {
		return err
	}
	counts := make(map[int64]int64)
	for i := range s.labels.Classes {
		counts[int64(i)] = 0
	}
	for _, v := range numbers {
		counts[v]++
		if len(counts) > max(mostClasses, len(s.labels.Classes)) {
			return nil
		}
	}
	c.labels = s.labels
	for v, n := range counts {
		c.values = append(c.values, Label{Value: v, Name: className(*s.labels, v), Records: n})
	}
	slices.SortFunc(c.values, func(a, b Label) int { return cmp.Compare(a.Value, b.Value) })
	at := make(map[int64]int, len(c.values))
	for i, v := range c.values {
		at[v.Value] = i
	}
	c.class = widen(numbers, func(v int64) int { return at[v] })
	return nil
}

// work returns how many values of records will be read.
func (c *census) work() (n int64) {
	for _, f := range c.ds.Schema().Fields {
		n += int64(c.ds.Len())
		if f.Content == "" && f.DType.Size() > 1 {
			n += int64(c.ds.Len())
		}
	}
	return n
}

func (c *census) progress(n int) {
	if c.opts.Progress != nil {
		c.opts.Progress(int64(n))
	}
}

func (c *census) field(ctx context.Context, f store.Field) (FieldStats, error) {
	out := statsOf(f)
	if f.Ragged {
		lengths, err := c.lengths(ctx, f)
		if err != nil {
			return out, err
		}
		out.Lengths = &lengths
	}
	if f.Content != "" {
		c.progress(c.ds.Len())
		return out, nil
	}
	if c.labels != nil && f.Name == c.labels.Name {
		out.Labels = c.values
	}
	sum, err := c.tally(ctx, f)
	if err != nil {
		return out, err
	}
	c.fill(&out, f, sum)
	if f.DType.Size() > 1 {
		err = c.histograms(ctx, f, &out)
	}
	return out, err
}

// fill takes over the figures of a tally.
func (c *census) fill(out *FieldStats, f store.Field, sum *tally) {
	all := moments.Moments{}
	for i := range sum.channels {
		ch := &sum.channels[i]
		s := ChannelStats{Name: "all"}
		if len(sum.channels) > 1 {
			s.Name = channelName(i, len(sum.channels))
		}
		if f.DType.Size() == 1 {
			ch.moments = ch.counts.moments(f.DType == tensor.Int8)
			h := ch.counts.histogram(f.DType)
			s.Histogram = &h
		}
		s.Moments = result(ch.moments)
		all.Merge(ch.moments)
		out.Channels = append(out.Channels, s)
	}
	total := result(all)
	out.Moments = &total
	if sum.classes == nil || out.Labels != nil {
		return
	}
	out.ClassField = c.labels.Name
	for i, channels := range sum.classes {
		out.Classes = append(out.Classes, ClassStats{Label: c.values[i], Channels: widen(channels, result)})
	}
}

// lengths reads how many rows the records of a ragged field have.
func (c *census) lengths(ctx context.Context, f store.Field) (LengthStats, error) {
	n := c.ds.Len()
	lengths := make([]float64, 0, n)
	indices, offsets := make([]int, 0, labelStep), make([]int64, labelStep+1)
	for a := 0; a < n; a += labelStep {
		indices = indices[:0]
		for i := a; i < min(n, a+labelStep); i++ {
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
	h := newHistogram(m.Min, m.Max, true)
	h.add(lengths)
	return LengthStats{Moments: result(m), Histogram: &h}, nil
}
