// Package staged defines transforms of the loader that are not functions: their records are made elsewhere, by another
// process or a device for example, several at a time. R identifies a record there.
//
// A function returns when its record is done, so it can overlap nothing. A [Stage] takes records by Put, which may
// return before the record is made, and Flush waits for all of them: the loader puts the records of a batch and flushes
// once.
package staged

import (
	"context"

	"github.com/penstock/penstock/tensor"
)

// Transform is a transform that the loader asks for a Stage in place of a function.
type Transform[R any] interface {
	// Stage returns the Stage that one goroutine will use.
	Stage(in tensor.Spec, id int) (Stage[R], error)
}

// Stage makes records that are done some time after they were put. It serves one goroutine, but for Waiting.
type Stage[R any] interface {
	// Put begins to make dst of the stored bytes src; dst has the length of the output. It has read src when it
	// returns, and may write to dst until Flush returns. An error is of this record, unless it is an [Error].
	Put(ctx context.Context, dst, src []byte, r R) error

	// Flush waits until all records that were put are made. After an error, also one of Put, it forgets the
	// records that are not made, and writes to no dst any more.
	Flush(ctx context.Context) error

	// Waiting returns the number in the Source of the oldest record that was put and is not made, and who makes it;
	// -1 if all records that were put are made. Any goroutine may call it.
	Waiting() (record int, on string)
}

// Error is an error of a [Stage] that is not of the record that is being put.
type Error struct {
	Record int // its number in the Source; -1 if the Stage makes no record any more, so that none can take its place
	Err    error
}

// Error says what happened.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
