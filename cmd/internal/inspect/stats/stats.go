// Package stats has the command inspect stats: statistics and histograms of all values.
//
// Compute opens a dataset and reads every record; ComputeOpen does the same for an open dataset.
// The result is a Stats with one FieldStats per field. An accumulator adds up one range of records,
// and the ranges do not depend on the number of workers, so that neither does any digit of the
// result. The result also says whether the values agree with the statistics in the manifest, by
// which training normalizes.
package stats

import (
	"context"
	"math"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Stats is the statistics of a dataset.
type Stats struct {
	Path    string       `json:"path"`
	Split   string       `json:"split,omitempty"`
	Records int64        `json:"records"`
	Fields  []FieldStats `json:"fields"`
}

// FieldStats is the statistics of a field. Texts and encoded images only have Lengths.
type FieldStats struct {
	Name     string         `json:"name"`
	DType    tensor.DType   `json:"dtype"`
	Shape    tensor.Shape   `json:"shape"` // of a record, of a row if ragged
	Ragged   bool           `json:"ragged,omitempty"`
	Layout   string         `json:"layout,omitempty"`
	Content  string         `json:"content,omitempty"`
	Moments  *store.Moments `json:"moments,omitempty"`  // of all values
	Channels []ChannelStats `json:"channels,omitempty"` // one entry if the field has no channels
	Lengths  *LengthStats   `json:"lengths,omitempty"`  // of a ragged field: rows per record
	Labels   []Label        `json:"labels,omitempty"`   // of a field of labels
	Classes  []ClassStats   `json:"classes,omitempty"`  // statistics by label, see ClassField
	Boxes    *BoxStats      `json:"boxes,omitempty"`    // of a field of boxes
	// ClassField is the field of labels by which Classes divides the records.
	ClassField string `json:"class_field,omitempty"`
	// Agrees reports whether the manifest has the same statistics; nil if the manifest has
	// no statistics of these records, as in a split or after a delete.
	Agrees *bool `json:"manifest_agrees,omitempty"`
}

// spec returns the type of the field.
func (s FieldStats) spec() tensor.Spec {
	return tensor.Spec{Name: s.Name, DType: s.DType, Shape: s.Shape, Ragged: s.Ragged, Layout: s.Layout,
		Content: s.Content}
}

// LengthName returns the noun for the lengths in Lengths.
func (s FieldStats) LengthName() string {
	if s.spec().IsBytes() {
		return "bytes a record"
	}
	return "rows a record"
}

// ChannelStats is the statistics of a channel.
type ChannelStats struct {
	Name string `json:"name"` // "red", "channel 4"; "all" of a field without channels
	store.Moments
	Histogram *Histogram `json:"histogram,omitempty"` // not in a manifest
}

// LengthStats is the statistics of the lengths of a ragged field's records, in rows.
type LengthStats struct {
	store.Moments
	Histogram *Histogram `json:"histogram,omitempty"`
}

// Label is a value of a field of labels.
type Label struct {
	Value   int64  `json:"value"`
	Name    string `json:"name,omitempty"`
	Records int64  `json:"records"`
}

// ClassStats is the statistics of the records of one label.
type ClassStats struct {
	Label
	Channels []store.Moments `json:"channels"`
}

// Options configures Compute. The zero value is usable.
type Options struct {
	dataset.Selection
	Workers  int           // goroutines that read; 0 means GOMAXPROCS
	Begin    func(n int64) // called with how many values of records will be read; may be nil
	Progress func(n int64) // called with n more of them, from any goroutine; may be nil
}

// Compute computes the statistics of the dataset at path from every value. The result is the same
// for any number of workers. Memory is needed for the labels, 8 bytes a record and more, and about
// 10 MiB per worker. Elements of more than one byte are read twice, because a histogram needs their
// limits.
func Compute(ctx context.Context, path string, opts Options) (*Stats, error) {
	ds, err := opts.Open(path)
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	return ComputeOpen(ctx, path, ds, opts)
}

// ComputeOpen is Compute for an open dataset; path is for messages.
func ComputeOpen(ctx context.Context, path string, ds *mmapds.Dataset, opts Options) (*Stats, error) {
	labels, err := ClassesOf(ctx, ds)
	if err != nil {
		return nil, err
	}
	c := &computation{ds: ds, opts: opts, labels: labels}
	if opts.Begin != nil {
		opts.Begin(c.work())
	}
	s := &Stats{Path: path, Split: opts.Split, Records: int64(ds.Len()), Fields: []FieldStats{}}
	for _, f := range ds.Schema().Fields {
		out, err := c.field(ctx, f)
		if err != nil {
			return nil, err
		}
		if m := ds.Manifest(); m != nil && m.Deleted == nil &&
			opts.Split == "" && m.Statistics[f.Name] != nil && !f.IsBytes() {
			same := out.agrees(m.Statistics[f.Name])
			out.Agrees = &same
		}
		s.Fields = append(s.Fields, out)
	}
	return s, nil
}

// statsOf returns the description of a field, without statistics.
func statsOf(f store.Field) FieldStats {
	return FieldStats{Name: f.Name, DType: f.DType, Shape: dataset.ShapeOf(f), Ragged: f.Ragged, Layout: f.Layout,
		Content: f.Content}
}

// takeOver sets the statistics to the manifest's.
func (s *FieldStats) takeOver(f store.Field, st *store.Statistics) {
	if !f.IsBytes() {
		s.Moments = &st.Moments
		s.Channels = []ChannelStats{{Name: "all", Moments: st.Moments}}
		for i, m := range st.Channels {
			s.Channels = append(s.Channels[:i], ChannelStats{Name: dataset.ChannelName(i, len(st.Channels)), Moments: m})
		}
	}
	if st.Lengths != nil {
		s.Lengths = &LengthStats{Moments: *st.Lengths}
	}
	for i, n := range st.Labels {
		s.Labels = append(s.Labels, Label{Value: int64(i), Name: dataset.ClassName(f, int64(i)), Records: n})
	}
}

// agrees reports whether the statistics equal the manifest's up to rounding.
func (s *FieldStats) agrees(st *store.Statistics) bool {
	var want FieldStats
	want.takeOver(store.Field{}, st)
	if s.Lengths != nil && (want.Lengths == nil || !alike(s.Lengths.Moments, want.Lengths.Moments)) {
		return false
	}
	return alike(*s.Moments, *want.Moments) && slices.EqualFunc(s.Channels, want.Channels, func(a, b ChannelStats) bool {
		return alike(a.Moments, b.Moments)
	})
}

// alike reports whether statistics are equal up to the rounding of sums in another order: mean and
// std may differ by 1e-9 of the largest magnitude, all other numbers must be equal.
func alike(a, b store.Moments) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*max(math.Abs(a.Min), math.Abs(a.Max), 1e-300) }
	return a.Min == b.Min && a.Max == b.Max && a.NonFinite == b.NonFinite && near(a.Mean, b.Mean) && near(a.Std, b.Std)
}
