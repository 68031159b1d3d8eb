package layout

import (
	"slices"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// NamedAxes returns the names of the axes of a field whose records have a shape; nil if no axis has a name. The numbers
// of complex values are one more axis, the last one, which has no name.
func NamedAxes(dims []string, shape tensor.Shape) []string {
	if len(dims) == 0 || len(dims) > len(shape)+1 || strings.Join(dims, "") == "" {
		return nil
	}
	return append(slices.Clone(dims), make([]string, len(shape)+1-len(dims))...)
}
