package field

import (
	"fmt"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// copyField keeps values as the source has them.
type copyField struct{ field source.Field }

// Copies reports whether j keeps values as the source has them.
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

// check makes sure that a value has the length of its type.
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
