package dataset

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
)

// LabelField returns the field of labels: the field called named if that is not "", else the first
// field with class names, else the first field of one integer per record, else nil. shown is the
// field that the caller shows as pictures, which is no candidate.
func LabelField(ds *mmapds.Dataset, named, shown string) (labels *store.Field, err error) {
	if named != "" && named == shown {
		return nil, fmt.Errorf("field %q is shown; labels are another field", shown)
	}
	for _, f := range ds.Schema().Fields {
		usable := len(f.Shape) == 0 && !f.Ragged && !f.DType.IsFloat() && f.Name != shown
		switch {
		case f.Name == named && !usable:
			return nil, fmt.Errorf("field %q holds no labels: they are one whole number a record", f.Name)
		case !usable, named != "" && f.Name != named:
			continue
		case labels == nil || len(labels.Classes) == 0 && len(f.Classes) > 0:
			labels = &f
		}
	}
	if labels == nil && named != "" {
		return nil, fmt.Errorf("it has no field %q", named)
	}
	return labels, nil
}

// ErrNoLabels is the error of a number that cannot be a label, because it is larger than any int64.
var ErrNoLabels = errors.New("not labels, which are smaller than 2^63")

// LabelStep is the number of labels that are read at a time.
const LabelStep = 1 << 16

// ReadLabels returns the label of every record, or nil if labels is nil. It takes 8 bytes per
// record.
func ReadLabels(ctx context.Context, ds *mmapds.Dataset, labels *store.Field) ([]int64, error) {
	if labels == nil {
		return nil, nil
	}
	n, size := ds.Len(), labels.RecordBytes()
	values := make([]int64, 0, n)
	indices, raw := make([]int, 0, LabelStep), Aligned(LabelStep*size)
	for a := 0; a < n; a += LabelStep {
		indices = indices[:0]
		for i := a; i < min(n, a+LabelStep); i++ {
			indices = append(indices, i)
		}
		part := raw[:len(indices)*size]
		if err := ds.Gather(ctx, labels.Name, indices, part); err != nil {
			return nil, err
		}
		for i := range indices {
			label, ok := labels.DType.Read(part[i*size:]).Int64()
			if !ok {
				value := labels.DType.Text(part[i*size:])
				return nil, fmt.Errorf("%w: record %d of %q has %s", ErrNoLabels, a+i, labels.Name, value)
			}
			values = append(values, label)
		}
	}
	return values, nil
}
