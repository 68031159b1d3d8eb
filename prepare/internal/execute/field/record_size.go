package field

import (
	"cmp"
	"fmt"

	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// usualRecord is the largest value of a record in bytes that is made without --memory.
const usualRecord = 256 << 20

// CheckSizes returns an error if a value of a record, as the source declares it or as transforms make it, needs
// more than memory bytes; 0 means usualRecord. It is called before memory is allocated, as a header of a few bytes
// can claim any size.
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

// checkRecord returns an error for records that are larger than the limit. Usually such a record is an array
// whose first axis does not count records, such as a volume that is read as a single record, and each worker
// would need that memory.
func checkRecord(name string, spec tensor.Spec, memory int64) error {
	n, limit := int64(spec.RecordBytes()), cmp.Or(memory, usualRecord)
	if n <= limit {
		return nil
	}
	return fmt.Errorf("field %q: a record of shape %v takes %s, more than %s; if this machine has the memory, allow it "+
		"with --memory, or give the array another first axis",
		name, spec.Shape, units.Bytes(n), units.Bytes(limit))
}
