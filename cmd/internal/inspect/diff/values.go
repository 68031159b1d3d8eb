package diff

import (
	"bytes"
	"math"
	"slices"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/tensor"
)

// records compares two batches of corresponding records. numbers has the records' numbers on the
// first side. Batches of equal bytes, by far the most frequent case, are compared as a whole.
func (v *ValueDiff) records(a, b dataset.Batch, numbers []int, tolerance float64) {
	if a.Values.DType() == b.Values.DType() && slices.Equal(a.Offsets, b.Offsets) &&
		bytes.Equal(a.Values.Bytes(), b.Values.Bytes()) {
		return
	}
	for i, number := range numbers {
		v.record(int64(number), a.Record(i), b.Record(i), tolerance)
	}
}

// record compares two records.
func (v *ValueDiff) record(number int64, a, b tensor.View, tolerance float64) {
	if a.Len() != b.Len() {
		v.Lengths++
		v.differs(number)
		return
	}
	n, largest := apart(a, b, tolerance)
	v.Elements += n
	v.Largest = max(v.Largest, largest)
	if n > 0 {
		v.differs(number)
	}
}

// differs counts a record that differs.
func (v *ValueDiff) differs(number int64) {
	v.Records++
	if v.First == nil {
		v.First = &number
	}
}

// apart counts the elements of two arrays that are further apart than tolerance, and returns
// their largest finite difference. NaN equals NaN and an infinity equals itself, since the
// question is whether the data are the same. float64 holds all values of smaller floats exactly.
func apart(a, b tensor.View, tolerance float64) (n int64, largest float64) {
	if a.DType() == b.DType() && bytes.Equal(a.Bytes(), b.Bytes()) {
		return 0, 0
	}
	if !a.DType().IsFloat() && !b.DType().IsFloat() {
		return apartInts(a, b, tolerance)
	}
	x, y := dataset.Floats(a), dataset.Floats(b)
	for i := range x {
		if x[i] == y[i] || math.IsNaN(x[i]) && math.IsNaN(y[i]) {
			continue
		}
		d := math.Abs(x[i] - y[i])
		if d <= tolerance {
			continue
		}
		n++
		if d*0 == 0 { // d is finite: infinity and NaN times 0 are NaN
			largest = max(largest, d)
		}
	}
	return n, largest
}

// apartInts is apart for integers and bools, without rounding: int64 and uint64 do not fit into
// float64.
func apartInts(a, b tensor.View, tolerance float64) (n int64, largest float64) {
	x, y := a.Bytes(), b.Bytes()
	for ; len(x) > 0; x, y = x[a.DType().Size():], y[b.DType().Size():] {
		i, j := a.DType().Read(x), b.DType().Read(y)
		if i == j {
			continue
		}
		if d := i.Apart(j); d > tolerance {
			n++
			largest = max(largest, d)
		}
	}
	return n, largest
}
