package column

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/prepare/source"
)

// Values of source.Options.Missing that are not values of fields.
const (
	MissingNaN  = "nan"  // floats become NaN
	MissingSkip = "skip" // the sample is left out
)

// Missing returns the value of a field that stands for an empty cell or a null, by the option Missing of a source.
// what is a number, a class name, MissingNaN or MissingSkip. Without a value, the error is source.ErrMissing,
// source.ErrNoImage for an image, or says why what does not fit the field.
func Missing(what string, f source.Field) ([]byte, error) {
	switch {
	case f.Image():
		return nil, source.ErrNoImage
	case what == "" || what == MissingSkip:
		return nil, source.ErrMissing
	case len(f.Classes) > 0:
		n := slices.Index(f.Classes, what)
		if n < 0 {
			return nil, source.ValueError("--missing %s: it is missing, and no class has that name; the classes are %s", what,
				source.Clip(strings.Join(f.Classes, ", ")))
		}
		return AppendNumber(nil, strconv.Itoa(n), f.DType)
	case what == MissingNaN && !f.DType.IsFloat():
		return nil, source.ValueError("--missing nan: it is missing, and %v has no NaN; write --missing VALUE or --missing "+
			"skip, or of CSV and JSON lines --fields COLUMN:float64", f.DType)
	}
	one, err := AppendNumber(nil, what, f.DType)
	if err != nil {
		return nil, source.ValueError("--missing: it is missing, and %w", err)
	}
	return bytes.Repeat(one, f.Shape.Elems()), nil
}
