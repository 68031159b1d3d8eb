package combine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/tensor"
)

// View is a Source of fields and records of other Sources, and stores no data: see [NewSelect] and [NewZip].
// It has their capabilities: consecutive records are views of their memory, records of a bucket are
// fetched ahead of time, and errors name files.
type View struct {
	table
	naming sync.Once
	id     string
}

// table has the sources of the fields and records of a View.
type table struct {
	kind string
	members
	specs   []tensor.Spec
	fields  []viewed  // one for each of specs
	rows    rows      // of each part
	scratch sync.Pool // of *[]int
}

// viewed is a field of a part.
type viewed struct {
	part int
	name string // there
}

var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.GridSource
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
	loader.GenerationSource
} = (*View)(nil)

// Len returns the number of records.
func (v *View) Len() int { return v.rows.n }

// Specs returns the fields.
func (v *View) Specs() []tensor.Spec { return v.specs }

// ID returns a digest of the identities of the Sources, and of the records and fields; empty if one has none.
func (v *View) ID() string {
	v.naming.Do(func() { v.id = v.table.id(v.ids()) })
	return v.id
}

// id returns the identity of the table over parts with some identities.
func (t *table) id(parts []string) string {
	if parts == nil {
		return ""
	}
	return t.kind + "(" + digest.Of(parts, names(t.specs), t.fields, t.rows.id()) + ")"
}

// IDIn returns the ID of the same records and fields in other generations of the datasets.
func (v *View) IDIn(numbers []int) (string, error) {
	ids, err := v.idsIn(numbers)
	return v.table.id(ids), err
}

// field returns the part of a field, and the field's name in that part.
func (t *table) field(name string) (*member, string, error) {
	i := fieldOf(t.specs, name)
	if i < 0 {
		return nil, "", fmt.Errorf("combine: %s: there is no field %q", t.kind, name)
	}
	return &t.members[t.fields[i].part], t.fields[i].name, nil
}

func (v *View) work(field string) int {
	p, name, err := v.field(field)
	if err != nil {
		return 0
	}
	return workOf(p.Source, name)
}

// Slice returns records [a, b): a view where they follow each other, else a copy.
func (v *View) Slice(field string, a, b int) (tensor.View, error) {
	p, name, err := v.field(field)
	if err != nil {
		return tensor.View{}, err
	}
	if a == b {
		return p.Slice(name, 0, 0)
	}
	first, n := v.rows.at(a, b)
	if n < b-a {
		return copied(v, field, a, b)
	}
	out, err := p.Slice(name, first, first+n)
	return out, v.renumber(err, a, b)
}

// SliceRagged returns the rows of records [a, b): a view where they follow each other, else a copy.
func (v *View) SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error) {
	p, name, err := v.field(field)
	if err != nil {
		return tensor.View{}, err
	}
	if a == b {
		return p.can.Ragged.SliceRagged(name, 0, 0, offsets)
	}
	if first, n := v.rows.at(a, b); n == b-a {
		out, err := p.can.Ragged.SliceRagged(name, first, first+n, offsets)
		return out, v.renumber(err, a, b)
	}
	return copiedRagged(v, v.specs[fieldOf(v.specs, field)], a, b, offsets)
}

// Gather copies records.
func (v *View) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	return v.translated(field, indices, func(p *member, name string, there []int) error {
		return p.Gather(ctx, name, there, dst)
	})
}

// Lengths sets the offsets of records of variable length.
func (v *View) Lengths(ctx context.Context, field string, indices []int, offsets []int64) error {
	return v.translated(field, indices, func(p *member, name string, there []int) error {
		return p.can.Ragged.Lengths(ctx, name, there, offsets)
	})
}

// GatherRagged copies the rows of records.
func (v *View) GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) (
	[]byte, error) {
	err := v.translated(field, indices, func(p *member, name string, there []int) (err error) {
		dst, err = p.can.Ragged.GatherRagged(ctx, name, there, offsets, dst)
		return err
	})
	return dst, err
}

// translated calls f with the part that has a field, and the numbers of the records there.
func (t *table) translated(field string, indices []int, f func(p *member, name string, there []int) error) error {
	p, name, err := t.field(field)
	if err != nil {
		return err
	}
	if t.rows.all() {
		return f(p, name, indices)
	}
	scratch, _ := t.scratch.Get().(*[]int)
	if scratch == nil {
		scratch = new([]int)
	}
	defer t.scratch.Put(scratch)
	*scratch = t.rows.translate((*scratch)[:0], indices)
	if err := f(p, name, *scratch); err != nil {
		return renumbered(err, *scratch, indices)
	}
	return nil
}

// renumbered makes an error that names a record of a Source name the one of a view: that at the same place of a list.
func renumbered(err error, there, here []int) error {
	var named loader.RecordError
	if errors.As(err, &named) {
		for k, i := range there {
			if i == named.Record() {
				return recordError{err, here[k]}
			}
		}
	}
	return err
}

// renumber makes an error of a part name the record of the View that it is of, one of [a, b).
func (t *table) renumber(err error, a, b int) error {
	var named loader.RecordError
	if err == nil || t.rows.all() || !errors.As(err, &named) {
		return err
	}
	for a < b {
		first, n := t.rows.at(a, b)
		if k := named.Record() - first; k >= 0 && k < n {
			return recordError{err, a + k}
		}
		a += n
	}
	return err
}

// each calls f for every run of records [a, b), until it fails.
func (t *table) each(field string, a, b int, f func(p *member, name string, first, end int) error) error {
	p, name, err := t.field(field)
	if err != nil {
		return err
	}
	for at := a; at < b; {
		first, n := t.rows.at(at, b)
		if err := f(p, name, first, first+n); err != nil {
			return t.renumber(err, at, at+n)
		}
		at += n
	}
	return nil
}

// Prefetch passes the hint on.
func (v *View) Prefetch(field string, a, b int) error {
	return v.each(field, a, b, (*member).Prefetch)
}

// Warm has the Source read records into memory.
func (v *View) Warm(field string, a, b int) error {
	return v.each(field, a, b, (*member).warm)
}

// run returns the records of a part that records [a, b) are, if they follow each other there.
func (t *table) run(field string, a, b int) (p *member, name string, first int, ok bool) {
	p, name, err := t.field(field)
	if err != nil || a < 0 || b > t.rows.n {
		return nil, "", 0, false
	}
	if a >= b {
		return p, name, 0, a == b
	}
	first, n := t.rows.at(a, b)
	return p, name, first, n == b-a
}

// IsWarm reports whether records [a, b) follow each other in memory that needs no reading.
func (v *View) IsWarm(field string, a, b int) bool {
	p, name, first, ok := v.run(field, a, b)
	return ok && p.can.Mapped != nil && p.can.Mapped.IsWarm(name, first, first+b-a)
}

// Contiguous reports whether records [a, b) are one piece of memory of a Source.
func (v *View) Contiguous(field string, a, b int) bool {
	p, name, first, ok := v.run(field, a, b)
	return ok && p.can.Contiguous(name, first, first+b-a)
}

// ChunkShape returns the chunk shape of the field in its Source. It is nil if the View selects records, whose chunks
// then do not form a grid.
func (v *View) ChunkShape(field string) []int {
	p, name, err := v.field(field)
	if err != nil || p.can.Grid == nil || !v.rows.all() {
		return nil
	}
	return p.can.Grid.ChunkShape(name)
}

// ReadChunk has the Source decode a chunk.
func (v *View) ReadChunk(ctx context.Context, field string, at []int, dst []byte) error {
	p, name, err := v.field(field)
	if err != nil || p.can.Grid == nil {
		return fmt.Errorf("combine: %s: field %q has no chunks", v.kind, field)
	}
	return p.can.Grid.ReadChunk(ctx, name, at, dst)
}

// Fault has the Source whose memory addr is in say why a read there failed.
func (v *View) Fault(addr uintptr) error {
	return v.renumber(v.fault(addr), 0, v.rows.n)
}

// Intact asks every Source.
func (v *View) Intact() error { return v.renumber(v.intact(), 0, v.rows.n) }

// Fetch names to a Source the records that will be needed.
func (v *View) Fetch(ctx context.Context, field string, indices []int) error {
	return v.translated(field, indices, func(p *member, name string, there []int) error {
		if p.can.Remote == nil {
			return nil
		}
		return p.can.Remote.Fetch(ctx, name, there)
	})
}
