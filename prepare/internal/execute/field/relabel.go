package field

import (
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

func (f relabel) Do(name string, dst, value []byte) (out []byte, err error) {
	dst, err = f.copyField.Do(name, dst, value)
	if err == nil {
		v := tensor.As[int64](tensor.Of(f.field.Spec, 1, dst))
		if v[0] < 0 || v[0] >= int64(len(f.numbers)) {
			return dst, &SampleError{fmt.Errorf("%s: %w", f.field.Name, source.ValueError("label %d of %d classes", v[0],
				len(f.numbers)))}
		}
		v[0] = f.numbers[v[0]]
	}
	return dst, err
}

// newRelabel returns the job for a label whose dataset has those classes already: new names
// get numbers after them.
func newRelabel(f source.Field, have []string) relabel {
	all := append([]string(nil), have...)
	numbers := make([]int64, len(f.Classes))
	for i, name := range f.Classes {
		at := slices.Index(all, name)
		if at < 0 {
			at = len(all)
			all = append(all, name)
		}
		numbers[i] = int64(at)
	}
	f.Classes = all
	return relabel{copyField{f}, numbers}
}
