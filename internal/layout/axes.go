package layout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// NamedAxes returns the names of the axes of a field whose records have a shape; nil if no axis has a name. The two
// numbers of complex values are one more axis, the last, which has no name.
func NamedAxes(dims []string, shape tensor.Shape) []string {
	if len(dims) == 0 || len(dims) > len(shape)+1 || strings.Join(dims, "") == "" {
		return nil
	}
	return append(slices.Clone(dims), make([]string, len(shape)+1-len(dims))...)
}

// CoordinatesID returns the identity of coordinates, which is the same for equal numbers of different types.
func CoordinatesID(d tensor.DType, values []byte) string {
	h, number := sha256.New(), make([]byte, 8)
	for ; len(values) > 0; values = values[d.Size():] {
		binary.LittleEndian.PutUint64(number, math.Float64bits(d.Read(values).Float64()))
		h.Write(number)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
