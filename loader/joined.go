package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/penstock/penstock/tensor"
)

// Joined is a Source of the records of several, one after the other. NewMix makes an Order
// of it that draws from each in a given proportion.
type Joined struct {
	parts   []Source
	ends    []int     // records in the parts up to each
	scratch sync.Pool // of *[]int
	grouped sync.Pool // of *groups
}

// Join returns the Source of all records of parts, which must have the same fields. The
// parts stay the caller's to close.
func Join(parts ...Source) (*Joined, error) {
	if len(parts) == 0 {
		return nil, errors.New("loader: join: no sources")
	}
	j := &Joined{parts: parts}
	n := 0
	for i, p := range parts {
		if i > 0 {
			if err := sameSpecs(parts[0].Specs(), p.Specs()); err != nil {
				return nil, fmt.Errorf("loader: join: source %d: %w", i, err)
			}
		}
		if _, ok := p.(raggedSource); !ok && slices.ContainsFunc(p.Specs(), func(s tensor.Spec) bool { return s.Ragged }) {
			return nil, fmt.Errorf("loader: join: source %d has fields of variable length, but no RunRagged, Lengths and GatherRagged", i)
		}
		n += p.Len()
		j.ends = append(j.ends, n)
	}
	j.scratch.New = func() any { return new([]int) }
	j.grouped.New = func() any { return &groups{starts: make([]int, len(parts)+1)} }
	return j, nil
}

func sameSpecs(a, b []tensor.Spec) error {
	same := func(x, y tensor.Spec) bool {
		return x.Name == y.Name && x.DType == y.DType && x.Ragged == y.Ragged && slices.Equal(x.Shape, y.Shape)
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
	}
	return strings.Join(out, ", ")
}

// Part returns which source a record is of, and its number there.
func (j *Joined) Part(record int) (source, number int) {
	i := sort.SearchInts(j.ends, record+1)
	return i, record - j.first(i)
}

func (j *Joined) first(i int) int {
	if i == 0 {
		return 0
	}
	return j.ends[i-1]
}

// Len returns the number of records of all sources.
func (j *Joined) Len() int { return j.ends[len(j.ends)-1] }

// Specs returns the fields that all sources have.
func (j *Joined) Specs() []tensor.Spec { return j.parts[0].Specs() }

func (j *Joined) spec(field string) tensor.Spec {
	for _, s := range j.Specs() {
		if s.Name == field {
			return s
		}
	}
	panic("loader: join: no field " + field)
}

// ID joins the identities of the sources; it is empty if one has none.
func (j *Joined) ID() string {
	ids := make([]string, len(j.parts))
	for i, p := range j.parts {
		if ids[i] = sourceID(p); ids[i] == "" {
			return ""
		}
	}
	return "joined(" + digest(ids) + ")"
}

// Contiguous reports whether records [a, b) are one piece of one source's memory.
func (j *Joined) Contiguous(field string, a, b int) bool {
	i, from := j.Part(a)
	if b > j.ends[i] {
		return false
	}
	c, ok := j.parts[i].(contiguity)
	return !ok || c.Contiguous(field, from, from+b-a)
}

// Run returns records [a, b): a view within one source, a copy across two.
func (j *Joined) Run(field string, a, b int) (tensor.View, error) {
	if i, from := j.Part(a); b <= j.ends[i] {
		return j.parts[i].Run(field, from, from+b-a)
	}
	all := make([]int, b-a)
	sequential(0).Fill(a, all)
	spec := j.spec(field)
	dst := make([]byte, (b-a)*spec.RecordBytes())
	if err := j.Gather(context.Background(), field, all, dst); err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(spec, b-a, dst), nil
}

// front appends to local the numbers, in their source, of the first indices that are all of
// one source, i.
func (j *Joined) front(indices, local []int) (_ []int, i int) {
	i, _ = j.Part(indices[0])
	lo, hi := j.first(i), j.ends[i]
	for _, r := range indices {
		if r < lo || r >= hi {
			break
		}
		local = append(local, r-lo)
	}
	return local, i
}

// fronts calls f for each stretch of indices that are of one source, with their place and
// their numbers there.
func (j *Joined) fronts(indices []int, f func(i, at int, local []int) error) error {
	scratch := j.scratch.Get().(*[]int)
	defer j.scratch.Put(scratch)
	for at := 0; at < len(indices); {
		local, i := j.front(indices[at:], (*scratch)[:0])
		*scratch = local
		if err := f(i, at, local); err != nil {
			return j.renumber(i, err)
		}
		at += len(local)
	}
	return nil
}

// renumber makes an error of source i that names a record name that of the Joined.
func (j *Joined) renumber(i int, err error) error {
	var named recordError
	if errors.As(err, &named) {
		return joinedError{err, i, j.first(i) + named.Record()}
	}
	return err
}

type joinedError struct {
	error
	source, record int
}

func (e joinedError) Unwrap() error { return e.error }
func (e joinedError) Record() int   { return e.record }
func (e joinedError) Error() string {
	return fmt.Sprintf("record %d (source %d): %v", e.record, e.source, e.error)
}

// Prefetch passes the hint on.
func (j *Joined) Prefetch(field string, a, b int) error {
	return j.each(a, b, func(p Source, a, b int) error { return p.Prefetch(field, a, b) })
}

// Warm has each source that knows how read its part of records [a, b) into memory.
func (j *Joined) Warm(field string, a, b int) error {
	return j.each(a, b, func(p Source, a, b int) error {
		if w, ok := p.(warmer); ok {
			return w.Warm(field, a, b)
		}
		return nil
	})
}

// IsWarm reports whether records [a, b) are of one source, which says that they are.
func (j *Joined) IsWarm(field string, a, b int) bool {
	i, from := j.Part(a)
	w, ok := j.parts[i].(warmth)
	return ok && b <= j.ends[i] && w.IsWarm(field, from, from+b-a)
}

// Fault has the source whose memory addr lies in say why a read there failed.
func (j *Joined) Fault(addr uintptr) error {
	for i, p := range j.parts {
		if f, ok := p.(FaultSource); ok {
			if err := f.Fault(addr); err != nil {
				return j.renumber(i, err)
			}
		}
	}
	return nil
}

// each calls f for the part of records [a, b) in every source that has some.
func (j *Joined) each(a, b int, f func(p Source, a, b int) error) error {
	for a < b {
		i, from := j.Part(a)
		n := min(b, j.ends[i]) - a
		if err := f(j.parts[i], from, from+n); err != nil {
			return j.renumber(i, err)
		}
		a += n
	}
	return nil
}

// Retain takes a lease of every source, or of none.
func (j *Joined) Retain() error {
	for i, p := range j.parts {
		if err := p.Retain(); err != nil {
			for _, held := range j.parts[:i] {
				held.Release()
			}
			return err
		}
	}
	return nil
}

// Release gives back a lease of every source.
func (j *Joined) Release() {
	for _, p := range j.parts {
		p.Release()
	}
}
