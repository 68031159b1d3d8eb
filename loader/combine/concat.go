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
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/tensor"
)

// Concat is a Source of the records of several Sources, one after the other. A sampler.Mix of its
// Sizes draws from each in a given proportion.
type Concat struct {
	members
	ends    []int     // records in the members up to each
	scratch sync.Pool // of *[]int
	grouped sync.Pool // of *groups
}

// NewConcat returns the Source of all records of sources, which must have the same fields: names, types,
// shapes, contents, layouts and, of those that are a loader.ClassedSource, names of classes. Normalizations,
// which a Source does not declare, are for the caller to compare. The caller still closes the sources.
func NewConcat(sources ...loader.Source) (*Concat, error) {
	if len(sources) == 0 {
		return nil, errors.New("combine: concat: no sources")
	}
	c := &Concat{}
	n := 0
	for i, src := range sources {
		m, err := newMember(src)
		if err != nil {
			return nil, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		if err := sameSpecs(sources[0].Specs(), src.Specs()); err != nil {
			return nil, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		if m.can.Ragged == nil && slices.ContainsFunc(src.Specs(), func(s tensor.Spec) bool { return s.Ragged }) {
			return nil, fmt.Errorf("combine: concat: source %d has fields of variable length, but is no loader.RaggedSource", i)
		}
		if err := c.sameClasses(m.can.Classed); err != nil {
			return nil, fmt.Errorf("combine: concat: source %d: %w", i, err)
		}
		if n += src.Len(); n > maxRecords {
			return nil, fmt.Errorf("combine: concat: more than %d records", maxRecords)
		}
		c.members, c.ends = append(c.members, m), append(c.ends, n)
	}
	c.scratch.New = func() any { return new([]int) }
	c.grouped.New = func() any { return &groups{starts: make([]int, len(sources)+1)} }
	return c, nil
}

// A Concat has the capabilities of its Sources.
var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.ChunkSource
	loader.MappedSource
	loader.FaultSource
	loader.CheckedSource
	loader.RemoteSource
	loader.DescribedSource
	loader.NamedSource
	loader.ClassedSource
	loader.BoundedSource
	loader.Identifier
} = (*Concat)(nil)

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

// Locate returns the source of a record, and its number there. The end of all records is the end of the last source.
func (c *Concat) Locate(record int) (source, number int) {
	i := min(sort.SearchInts(c.ends, record+1), len(c.ends)-1)
	return i, record - c.first(i)
}

func (c *Concat) first(i int) int {
	if i == 0 {
		return 0
	}
	return c.ends[i-1]
}

// SizesOf returns the numbers of records of the sources that src has one after the other, if it is a Concat, or a View
// of some fields of all records of one; nil for other Sources.
func SizesOf(src loader.Source) []int {
	switch s := src.(type) {
	case *Concat:
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
		sizes[i] = c.ends[i] - c.first(i)
	}
	return sizes
}

// Len returns the number of records of all sources.
func (c *Concat) Len() int { return c.ends[len(c.ends)-1] }

// Specs returns the fields that all sources have.
func (c *Concat) Specs() []tensor.Spec { return c.members[0].Specs() }

func (c *Concat) spec(field string) tensor.Spec {
	for _, s := range c.Specs() {
		if s.Name == field {
			return s
		}
	}
	panic("combine: concat: no field " + field)
}

func (c *Concat) work(field string) (most int) {
	for _, m := range c.members {
		most = max(most, workOf(m.Source, field))
	}
	return most
}

// ID joins the identities of the sources; it is empty if one has none.
func (c *Concat) ID() string { return concatID(c.ids()) }

func concatID(ids []string) string {
	if ids == nil {
		return ""
	}
	return "concat(" + digest.Of(ids) + ")"
}

// IDIn returns the ID of the same records in other generations of the datasets.
func (c *Concat) IDIn(numbers []int) (string, error) {
	ids, err := c.idsIn(numbers)
	return concatID(ids), err
}

// Contiguous reports whether records [a, b) are one piece of one source's memory.
func (c *Concat) Contiguous(field string, a, b int) bool {
	i, from := c.Locate(a)
	return b <= c.ends[i] && c.members[i].can.Contiguous(field, from, from+b-a)
}

// Slice returns records [a, b): a view within one source, a copy across two.
func (c *Concat) Slice(field string, a, b int) (tensor.View, error) {
	if i, from := c.Locate(a); b <= c.ends[i] {
		return c.members[i].Slice(field, from, from+b-a)
	}
	return copied(c, field, a, b)
}

// front appends to local the numbers, in their source, of the first indices that are all in
// one source, i.
func (c *Concat) front(indices, local []int) (_ []int, i int) {
	i, _ = c.Locate(indices[0])
	lo, hi := c.first(i), c.ends[i]
	for _, r := range indices {
		if r < lo || r >= hi {
			break
		}
		local = append(local, r-lo)
	}
	return local, i
}

// fronts calls f for each stretch of indices that are in one source, with their place and
// their numbers there.
func (c *Concat) fronts(indices []int, f func(i, at int, local []int) error) error {
	scratch := c.scratch.Get().(*[]int)
	defer c.scratch.Put(scratch)
	for at := 0; at < len(indices); {
		local, i := c.front(indices[at:], (*scratch)[:0])
		*scratch = local
		if err := f(i, at, local); err != nil {
			return c.renumber(i, err)
		}
		at += len(local)
	}
	return nil
}

// renumber turns the record number in an error of source i into the number of the record in the Concat.
func (c *Concat) renumber(i int, err error) error {
	var named loader.RecordError
	if errors.As(err, &named) {
		return concatError{err, i, c.first(i) + named.Record()}
	}
	return err
}

type concatError struct {
	error
	source, record int
}

func (e concatError) Unwrap() error { return e.error }
func (e concatError) Record() int   { return e.record }
func (e concatError) Error() string {
	return fmt.Sprintf("record %d (source %d): %v", e.record, e.source, e.error)
}

// Prefetch passes the hint on.
func (c *Concat) Prefetch(field string, a, b int) error {
	return c.each(field, a, b, (*member).Prefetch)
}

// Warm calls Warm of each source that is a loader.MappedSource, for its part of records [a, b).
func (c *Concat) Warm(field string, a, b int) error {
	return c.each(field, a, b, (*member).warm)
}

// IsWarm reports whether records [a, b) are in one source, where they are warm.
func (c *Concat) IsWarm(field string, a, b int) bool {
	i, from := c.Locate(a)
	mapped := c.members[i].can.Mapped
	return mapped != nil && b <= c.ends[i] && mapped.IsWarm(field, from, from+b-a)
}

// Fault asks the source whose memory contains addr why a read there failed.
func (c *Concat) Fault(addr uintptr) error {
	for i, m := range c.members {
		if m.can.Fault != nil {
			if err := m.can.Fault.Fault(addr); err != nil {
				return c.renumber(i, err)
			}
		}
	}
	return nil
}

// each calls f for the part of records [a, b) in every source that has some.
func (c *Concat) each(field string, a, b int, f func(m *member, field string, first, end int) error) error {
	for a < b {
		i, from := c.Locate(a)
		n := min(b, c.ends[i]) - a
		if err := f(&c.members[i], field, from, from+n); err != nil {
			return c.renumber(i, err)
		}
		a += n
	}
	return nil
}
