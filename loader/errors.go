package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
)

// ErrClosed is returned once the Loader is closed.
var ErrClosed = errors.New("loader: closed")

// ErrBusy is returned by an epoch that starts while another of the same Loader is still
// being iterated.
var ErrBusy = errors.New("another epoch of this Loader is still being iterated; a Loader serves one at a time: leave that loop first, or make a second Loader")

// ErrKept is returned by Keep when as many batches are kept as Options.Prefetch allows.
var ErrKept = errors.New("as many batches are kept as Options.Prefetch allows; Release one, or raise Prefetch")

// Error is why a batch could not be made. It is yielded in place of that batch, as the
// last of the epoch.
type Error struct {
	Epoch    int    // the epoch's number
	Batch    int    // the batch's number in the epoch, from 0; -1 if the Loader could not be made
	Field    string // "" if no single field is to blame
	Record   int    // the record's number in the Source, -1 if no single record is to blame
	Name     string // what the record was made of, if the Source knows: the path of its file
	Location string // where the Source has that record, if it says: file, shard and byte
	Err      error  // what the Source or the Transform said
}

// place notes where the record is that e is about. One that the Source itself speaks of has its
// place in the text.
func (c *setup) place(e *Error) *Error {
	if c.can.Described != nil && e.Location == "" && e.Field != "" && e.Record >= 0 && !e.located() {
		e.Location = c.can.Described.Location(e.Field, e.Record)
	}
	return e
}

// name notes what the record was made of that e is about.
func (c *setup) name(ctx context.Context, e *Error) *Error {
	if e.Record >= 0 && e.Record < c.src.Len() {
		if name, err := c.can.SourceName(ctx, e.Record); err == nil { // e is the error to report
			e.Name = name
		}
	}
	return e
}

// located reports whether the text of Err says where.
func (e *Error) located() bool {
	var named RecordError
	return errors.As(e.Err, &named)
}

// Error says where, and then what the Source said.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("loader: ")
	if e.Batch >= 0 {
		fmt.Fprintf(&b, "batch %d: ", e.Batch)
	}
	if !e.located() {
		if e.Record >= 0 {
			fmt.Fprintf(&b, "record %d", e.Record)
			if place := e.places(); place != "" {
				fmt.Fprintf(&b, " (%s)", place)
			}
			b.WriteString(": ")
		}
		if e.Field != "" {
			fmt.Fprintf(&b, "field %q: ", e.Field)
		}
	}
	b.WriteString(e.Err.Error())
	if e.located() && e.Name != "" {
		fmt.Fprintf(&b, " (made of %s)", shell.Line(e.Name))
	}
	return b.String()
}

// places says what the record was made of, and where it is.
func (e *Error) places() string {
	switch {
	case e.Name == "":
		return e.Location
	case e.Location == "":
		return shell.Line(e.Name)
	}
	return shell.Line(e.Name) + "; in " + e.Location
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// catch is deferred around code of the Source, the Sampler and the caller. A fault in mapped
// memory of the Source becomes the error that the Source has for it. Every other panic becomes
// an error with the stack that led to it, or passes through where the worker is plain.
func (w *worker) catch(err *error) {
	p := recover()
	if p == nil {
		return
	}
	if lost := w.ld.lostAt(p); lost != nil {
		*err = lost
		return
	}
	if w.plain {
		panic(p)
	}
	*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
}

// lostAt returns the Source's error for a panic that is a fault in its memory, or nil.
func (ld *Loader) lostAt(p any) error {
	if fault, ok := p.(interface{ Addr() uintptr }); ok && ld.can.Fault != nil {
		return ld.can.Fault.Fault(fault.Addr())
	}
	return nil
}

// outside returns the position of the first index that is not in [0, n), or -1.
func outside(indices []int, n int) int {
	for i, r := range indices {
		if uint(r) >= uint(n) {
			return i
		}
	}
	return -1
}

// outside returns the place of the first record that is not in a Source of n, or -1. Of the run
// that the batch begins with only the ends are looked at.
func (s *slot) outside(n int) int {
	first, last := s.indices[0], s.indices[s.run-1]
	switch {
	case uint(first) >= uint(n):
		return 0
	case uint(last) >= uint(n):
		return n - first
	}
	if i := outside(s.indices[s.run:], n); i >= 0 {
		return s.run + i
	}
	return -1
}

// locate finds the record that reading places [lo, hi) of field f failed on, by reading them
// one by one unless cause names it.
func (w *worker) locate(p *pass, s *slot, f, lo, hi int, cause error) *Error {
	return w.ld.name(p.ctx, w.find(p, s, f, lo, hi, cause))
}

// find is locate without the name.
func (w *worker) find(p *pass, s *slot, f, lo, hi int, cause error) *Error {
	found := &Error{Epoch: s.part.number, Batch: s.step, Field: w.ld.fields[f].in.Name, Record: -1, Err: cause}
	var named RecordError
	if errors.As(cause, &named) {
		found.Record = named.Record()
		return found
	}
	for i := lo; i < hi; i++ {
		err := w.probe(p, f, s.indices[i])
		if p.ctx.Err() != nil {
			break
		}
		if err != nil {
			found.Record, found.Err = s.indices[i], err
			break
		}
	}
	return found
}

// probe reads a field of one record.
func (w *worker) probe(p *pass, f, record int) (err error) {
	defer w.catch(&err)
	fd, ends := &w.ld.fields[f], make([]int64, 2)
	if fd.in.Ragged {
		_, err := w.ld.can.Ragged.GatherRagged(p.ctx, fd.in.Name, []int{record}, ends, nil)
		return err
	}
	return w.gather(p.ctx, fd.in.Name, []int{record}, make([]byte, fd.stored))
}

// runLength returns how many records from the first on follow each other in the Source.
func runLength(indices []int) int {
	first := indices[0]
	for n, r := range indices {
		if r != first+n {
			return n
		}
	}
	return len(indices)
}
