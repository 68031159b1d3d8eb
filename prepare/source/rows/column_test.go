package rows

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// A label keeps its value, whatever the type of its whole number.
func TestLabelsOfEveryType(t *testing.T) {
	for d := tensor.Uint8; d <= tensor.Int64; d++ {
		bits := 8 * d.Size()
		numbers := []int64{0, 1, 100, math.MaxInt64 >> (64 - bits)}
		if strings.HasPrefix(d.String(), "int") {
			numbers = append(numbers, -1, -2, math.MinInt64>>(64-bits))
		} else if bits < 64 {
			numbers = append(numbers, 1<<bits-1)
		}
		label := target{field: source.LabelField("y", nil), as: asLabel, Column: new(Column)}
		label.DType = d
		for _, want := range numbers {
			v := source.NewValues(1)
			v.Clear()
			x := Value{DType: d, Data: binary.LittleEndian.AppendUint64(nil, uint64(want))[:d.Size()]}
			if err := label.put(v, &x); err != nil {
				t.Errorf("%v %d: %v", d, want, err)
			} else if got := int64(binary.LittleEndian.Uint64(v.Get(0))); got != want {
				t.Errorf("%v %d became the label %d", d, want, got)
			}
		}
	}
	label := target{field: source.LabelField("y", nil), as: asLabel, Column: new(Column)}
	label.DType = tensor.Uint64
	v := source.NewValues(1)
	v.Clear()
	if err := label.put(v, &Value{DType: tensor.Uint64, Data: binary.LittleEndian.AppendUint64(nil, 1<<63)}); err == nil {
		t.Errorf("2^63 became the label %d", int64(binary.LittleEndian.Uint64(v.Get(0))))
	}
}
