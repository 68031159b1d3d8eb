package loader

import (
	"errors"
	"fmt"
	"strings"
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
	Location string // where the Source has that record, if it tells: file, shard and byte
	Err      error  // what the Source or the Transform said
}

// place notes where the record is that e is about. One that the Source itself speaks of has its
// place in the text.
func (ld *Loader) place(e *Error) *Error {
	if ld.can.Described != nil && e.Location == "" && e.Field != "" && e.Record >= 0 && !e.located() {
		e.Location = ld.can.Described.Location(e.Field, e.Record)
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
			if e.Location != "" {
				fmt.Fprintf(&b, " (%s)", e.Location)
			}
			b.WriteString(": ")
		}
		if e.Field != "" {
			fmt.Fprintf(&b, "field %q: ", e.Field)
		}
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
