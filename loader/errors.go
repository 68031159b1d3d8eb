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

// ErrKept is returned by Keep when as many batches are kept as Options.Ahead allows.
var ErrKept = errors.New("as many batches are kept as Options.Ahead allows; Release one, or raise Ahead")

// Error is why a batch could not be made. It is yielded in place of that batch, as the
// last of the epoch.
type Error struct {
	Epoch  int    // the epoch's number
	Batch  int    // the batch's number in the epoch, from 0; -1 if the Loader could not be made
	Field  string // "" if no single field is to blame
	Record int    // the record's number in the Source, -1 if no single record is to blame
	Err    error  // what the Source said
}

// Error says where, and then what the Source said.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("loader: ")
	if e.Batch >= 0 {
		fmt.Fprintf(&b, "batch %d: ", e.Batch)
	}
	var named recordError
	if !errors.As(e.Err, &named) {
		if e.Record >= 0 {
			fmt.Fprintf(&b, "record %d: ", e.Record)
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
