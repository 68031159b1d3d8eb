package preprocess

import (
	"fmt"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/tensor"
)

// usualRecord is the largest value of a record that is made where --memory does not say more.
const usualRecord = 1 << 30

// checkRecords refuses records whose values, as the source says that they are or as transforms make them, need more
// memory than there is to be, before any is taken: a header of a few bytes can claim all of it.
func (c Config) checkRecords(jobs []fieldJob, fields []source.Field) error {
	for i, f := range fields {
		if err := c.checkRecord(f.Name, f.Spec); err != nil {
			return err
		}
		if a, ok := jobs[i].(arrayField); ok {
			out, err := a.pipeline.Output(f.Spec)
			if err != nil {
				return fmt.Errorf("field %q: %w", f.Name, err)
			}
			if err := c.checkRecord(f.Name, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c Config) checkRecord(name string, spec tensor.Spec) error {
	n, limit := int64(spec.RecordBytes()), max(c.Memory, usualRecord)
	if n <= limit {
		return nil
	}
	return fmt.Errorf("field %q: a record of shape %v takes %s, more than %s; if this machine has the memory, allow it with --memory, or give the array another first axis",
		name, spec.Shape, cli.Bytes(n), cli.Bytes(limit))
}
