// Package combine makes Sources of other Sources, or of memory. They store no records, except decoded chunks that wait
// for their next use.
//
// [View] selects records and fields (NewSelect) or puts the fields of several Sources side by side (NewZip). [Windows]
// cuts pieces from the arrays of a Source. [Concat] puts Sources one after the other, and [Packed] puts records of
// variable length into rows of one length. [Arrays] has slices in memory, and [Func] calls a function.
//
// A combined Source passes each request on with the record numbers of the Source below, and turns the numbers in errors
// back into its own. It has a capability, such as chunks or fetching ahead, only where the Sources below have it, so
// that a Loader treats it as it would treat them. The caller closes the Sources.
package combine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Concat is a Source of the records of several Sources, one after the other. A sampler.Mix of its
// Sizes draws from each Source in a given proportion.
type Concat struct{ route }

// NewConcat returns the Source of all records of sources, which must have the same fields: names, types, shapes,
// contents, layouts, meanings as far as they are known and the names of classes of each source that is a
// loader.ClassedSource. Normalizations, which a Source does not declare, are for the caller to compare. The caller
// still closes the sources.
func NewConcat(sources ...loader.Source) (*Concat, error) {
	if len(sources) == 0 {
		return nil, errors.New("combine: concat: no sources")
	}
	c := &Concat{}
	c.kind, c.specs, c.how = "concat", slices.Clone(sources[0].Specs()), func() []any { return nil }
	for _, s := range c.specs {
		c.fields = append(c.fields, viewed{name: s.Name})
	}
	for i, src := range sources {
		m, err := newMember(src)
		if err != nil {
			return nil, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		if err := sameSpecs(c.specs, src.Specs()); err != nil {
			return nil, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		for k, spec := range src.Specs() {
			if how := c.specs[k].Unlike(spec); how != "" {
				return nil, fmt.Errorf("combine: concat: source %d: field %q %s", i, spec.Name, how)
			}
			c.specs[k] = c.specs[k].Known(spec)
		}
		if m.can.Ragged == nil && slices.ContainsFunc(src.Specs(), func(s tensor.Spec) bool { return s.Ragged }) {
			return nil, fmt.Errorf("combine: concat: source %d has fields of variable length, but is no loader.RaggedSource", i)
		}
		if err := c.sameClasses(m.can.Classed); err != nil {
			return nil, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		if c.rows.n += src.Len(); c.rows.n > maxRecords {
			return nil, fmt.Errorf("combine: concat: more than %d records", maxRecords)
		}
		c.members, c.ends = append(c.members, m), append(c.ends, c.rows.n)
	}
	c.ends[len(c.ends)-1] = math.MaxInt
	return c, nil
}

var _ loader.ChunkSource = (*Concat)(nil)

func sameSpecs(a, b []tensor.Spec) error {
	same := func(x, y tensor.Spec) bool {
		return x.Name == y.Name && x.DType == y.DType && x.Ragged == y.Ragged && x.Content == y.Content &&
			x.Layout == y.Layout && x.Image == y.Image && x.Instances == y.Instances && slices.Equal(x.Shape, y.Shape)
	}
	if slices.EqualFunc(a, b, same) {
		return nil
	}
	return fmt.Errorf("has the fields %s; the first source has %s", describe(b), describe(a))
}

func describe(specs []tensor.Spec) string {
	out := make([]string, len(specs))
	for i, s := range specs {
		out[i] = fmt.Sprintf("%s %v%v", s.Name, s.DType, s.Shape)
		if s.Ragged {
			out[i] += " of any number of rows"
		}
		for _, word := range []string{s.Content, s.Layout, s.Image, s.Instances} {
			if word != "" {
				out[i] += " " + word
			}
		}
	}
	return strings.Join(out, ", ")
}

// Locate returns the source of a record, and the record's number there. The end of all records
// counts as the end of the last source.
func (c *Concat) Locate(record int) (source, number int) {
	i := c.segment(record)
	return i, record - c.start(i)
}

// SizesOf returns the numbers of records of the sources that src concatenates. src is a Concat, a
// Packed with Pack.Sizes, or a View of some fields but all records of a Concat or Packed. For
// other Sources SizesOf returns nil.
func SizesOf(src loader.Source) []int {
	switch s := src.(type) {
	case *Concat:
		return s.Sizes()
	case *Packed:
		return s.Sizes()
	case *View:
		if s.kind == "select" && s.rows.all() {
			return SizesOf(s.members[0].Source)
		}
	}
	return nil
}

// Sizes returns the number of records of each source.
func (c *Concat) Sizes() []int {
	sizes := make([]int, len(c.members))
	for i := range sizes {
		sizes[i] = c.members[i].Len()
	}
	return sizes
}
