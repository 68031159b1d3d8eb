package loader

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/schedule"
)

// ErrClosed is returned once the Loader is closed.
var ErrClosed = errors.New("loader: closed")

// ErrBusy is returned by an epoch that starts while another of the same Loader is still
// being iterated.
var ErrBusy = schedule.ErrBusy

// ErrTimeout is wrapped by the Error of a batch that was not finished after Options.Timeout. The
// Loader cancels the hanging read through its context, and waits for the read once more as long. A
// read that still hangs then, as on a dead network disk, is left behind: the loop ends without it,
// the Loader starts no other epoch until the read returns, Close does not wait, and the read's
// memory is not freed.
var ErrTimeout = errors.New("timeout")

// ErrKept is returned by Keep when as many batches are kept as Options.Prefetch allows.
var ErrKept = errors.New("as many batches are kept as Options.Prefetch allows; Release one, or raise Prefetch")

// Error is why a batch could not be made. It is yielded in place of that batch, as the
// last of the epoch.
type Error struct {
	Epoch    int    // the epoch's number
	Batch    int    // the batch's number in the epoch, from 0; -1 if the Loader could not be made
	Field    string // "" if no single field is to blame
	Record   int    // the record's number in the Source, -1 if no single record is to blame
	Name     string // the sample that the record was built from, if the Source knows: the path of its file
	Location string // where the Source has that record, if it says: file, shard and byte
	Err      error  // what the Source or the Transform said
}

// batchError adds epoch and batch to an error, unless the error has its place already.
func batchError(epoch, step int, err error) error {
	if located, ok := err.(*Error); ok {
		return located
	}
	return &Error{Epoch: epoch, Batch: step, Record: -1, Err: err}
}

// located adds the record's place to an error of the fill package. Other errors are not about a
// record, and stay as they are.
func (c *setup) located(ctx context.Context, b *fill.Batch, err error) error {
	if failed, ok := err.(*fill.Error); ok {
		return c.recordError(ctx, b, failed)
	}
	return err
}

// recordError returns the Error for a record that failed. The Source's location is added only if
// the record was read alone: otherwise the number may be of another record of the same call.
func (c *setup) recordError(ctx context.Context, b *fill.Batch, failed *fill.Error) *Error {
	e := &Error{Epoch: b.Epoch().Number, Batch: b.Step(), Field: c.plan.Fields[failed.Field].In.Name,
		Record: failed.Record, Err: failed.Err}
	if failed.Alone {
		c.place(e)
	}
	return c.name(ctx, e)
}

// place sets where the Source stores the record that e is about. An error whose text names the
// record already has its location in the text.
func (c *setup) place(e *Error) *Error {
	if c.can.Described != nil && e.Location == "" && e.Field != "" && e.Record >= 0 && !e.located() {
		e.Location = c.can.Described.Location(e.Field, e.Record)
	}
	return e
}

// name sets the name of the sample that the record was built from. A failure to find the name is
// dropped, because e is the error to report.
func (c *setup) name(ctx context.Context, e *Error) *Error {
	if e.Record >= 0 && e.Record < c.src.Len() {
		if name, err := c.can.SourceName(ctx, e.Record); err == nil { // e is the error to report
			e.Name = name
		}
	}
	return e
}

// located reports whether the text of Err names the record.
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
	if e.located() && e.Name != "" && !strings.Contains(e.Err.Error(), e.Name) {
		fmt.Fprintf(&b, " (from %s)", shell.Line(e.Name))
	}
	return b.String()
}

// places returns the name of the record's sample and the record's location, whichever are known.
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
