package field

import (
	"fmt"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// copyField stores the values of the source. It is its own Worker, as it has no state.
type copyField struct{ field source.Field }

// Copies reports whether a job stores the values of the source unchanged.
func Copies(j Job) bool {
	_, ok := j.(copyField)
	return ok
}

func (f copyField) NewWorker() Worker { return f }

func (f copyField) Probe(_ string, value []byte) (store.Field, error) {
	return f.field.Field, f.check(value)
}

func (f copyField) Do(_ string, dst, value []byte) (out []byte, err error) {
	if err := f.check(value); err != nil {
		return dst, &SampleError{err}
	}
	return append(dst[:0], value...), nil
}

// check returns an error if a value does not have the length of its type, or is a text that is not UTF-8.
func (f copyField) check(value []byte) error {
	size := f.field.RecordBytes()
	switch {
	case f.field.Content == tensor.Text && !utf8.Valid(value):
		return fmt.Errorf("%s: %w", f.field.Name,
			source.ValueError("text that is not UTF-8 (iconv -f LATIN1 -t UTF-8 converts a table in Latin-1)"))
	case !f.field.Ragged && len(value) != size:
		return fmt.Errorf("%s: %w", f.field.Name, source.ValueError("%d bytes instead of %d", len(value), size))
	case f.field.Ragged && len(value)%size != 0:
		return fmt.Errorf("%s: %w", f.field.Name, source.ValueError("%d bytes are not whole rows of %d", len(value), size))
	}
	return nil
}
