package field

import (
	"cmp"
	"fmt"

	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// usualRecord is the largest value of a record that is made where --memory does not say it.
const usualRecord = 256 << 20

// CheckSizes refuses records whose values, as the source says that they are or as transforms make them, need more
// memory than there is to be, before any is taken: a header of a few bytes can claim all of it.
func CheckSizes(jobs []Job, fields []source.Field, memory int64) error {
	for i, f := range fields {
		if err := checkRecord(f.Name, f.Spec, memory); err != nil {
			return err
		}
		if a, ok := jobs[i].(arrayField); ok {
			out, err := a.pipeline.Output(f.Spec)
			if err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
			if err := checkRecord(f.Name, out, memory); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRecord refuses records that are larger than usual. They are mostly an array whose first axis is not the records,
// such as a volume read as one record, and would fill the memory of every worker.
func checkRecord(name string, spec tensor.Spec, memory int64) error {
	n, limit := int64(spec.RecordBytes()), cmp.Or(memory, usualRecord)
	if n <= limit {
		return nil
	}
	return fmt.Errorf("field %q: a record of shape %v takes %s, more than %s; if this machine has the memory, allow it "+
		"with --memory, or give the array another first axis",
		name, spec.Shape, units.Bytes(n), units.Bytes(limit))
}
