package field

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// relabel is a job for class numbers that gives them the numbers that the classes have in
// the dataset that is appended to.
type relabel struct {
	copyField
	numbers []int64
}

func (f relabel) NewWorker() Worker { return f }

// Do renumbers a label in its stored width. A label outside of the classes makes the sample bad.
func (f relabel) Do(name string, dst, value []byte) (out []byte, err error) {
	dst, err = f.copyField.Do(name, dst, value)
	if err != nil {
		return dst, err
	}
	label, ok := f.field.DType.Read(dst).Int64()
	if !ok || label < 0 || label >= int64(len(f.numbers)) {
		return dst, &SampleError{fmt.Errorf("%s: %w", f.field.Name, source.ValueError("label %d of %d classes", label,
			len(f.numbers)))}
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(f.numbers[label]))
	copy(dst, word[:])
	return dst, nil
}

func signed(d tensor.DType) bool {
	return d == tensor.Int8 || d == tensor.Int16 || d == tensor.Int32 || d == tensor.Int64
}

// newRelabel returns the job for a label whose dataset has those classes already: new names
// get numbers after them. They are few enough for the type of the label, or that is an error.
func newRelabel(f source.Field, have []string) (relabel, error) {
	all := append([]string(nil), have...)
	known := make(map[string]int64, len(all))
	for at, name := range slices.Backward(all) { // the first of two that are alike
		known[name] = int64(at)
	}
	numbers := make([]int64, len(f.Classes))
	for i, name := range f.Classes {
		at, is := known[name]
		if !is {
			at = int64(len(all))
			all, known[name] = append(all, name), at
		}
		numbers[i] = at
	}
	f.Classes = all
	bits := 8 * f.DType.Size()
	switch {
	case signed(f.DType):
		bits--
	case f.DType == tensor.Bool:
		bits = 1
	}
	if bits < 31 && len(all) > 1<<bits {
		return relabel{}, fmt.Errorf("it would have %d classes, and %v holds %d numbers of classes; write a dataset whose "+
			"labels are int64", len(all), f.DType, 1<<bits)
	}
	return relabel{copyField{f}, numbers}, nil
}
