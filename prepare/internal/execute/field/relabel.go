package field

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// relabel gives class numbers of the source the numbers of the same classes in the dataset that is appended to.
type relabel struct {
	copyField
	numbers []int64 // by class number of the source
}

func (f relabel) NewWorker() Worker { return f }

// Do renumbers a label, which keeps its size. A number outside of the classes is a SampleError.
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
	// Little endian, so the first bytes are the number in the label's size; newRelabel has made sure that it fits.
	copy(dst, word[:])
	return dst, nil
}

// signed reports whether d is a signed integer.
func signed(d tensor.DType) bool {
	return d == tensor.Int8 || d == tensor.Int16 || d == tensor.Int32 || d == tensor.Int64
}

// newRelabel returns the job for a label whose dataset has the classes have. New classes get the numbers after
// them. It is an error if the type of the label cannot hold so many.
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
