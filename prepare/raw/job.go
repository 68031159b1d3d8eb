package raw

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
)

// naming says whether the last field is the name of the sample.
type naming int

const (
	withoutNames naming = iota
	withNames
)

// newJob returns the job that turns samples into records. transforms makes pixels of image files; nil keeps the
// files, as preprocess --keep-encoded does. The first usable sample decides the schema; unusable samples before it
// are skipped.
func newJob(l listing, info source.Info, names naming, transforms json.RawMessage) (*execute.Job, error) {
	options := field.DefaultOptions()
	options.Transforms = transforms
	options.KeepEncoded = transforms == nil && slices.ContainsFunc(info.Fields, source.Field.Image)
	read := field.Read(info.Fields)
	fields, joints, err := options.Jobs(read, nil)
	if err != nil {
		return nil, err
	}
	if err := field.CheckSizes(fields, read, 0); err != nil {
		return nil, err
	}
	j := &execute.Job{Source: info.Fields, Fields: fields, Joints: joints, Options: options,
		Named: names == withNames}
	w := execute.NewWorker(j)
	var first error
	for i := range l.len() {
		sample, err := l.sample(i)
		if err == nil {
			err = w.Probe(&execute.Slot{Sample: sample})
		}
		if err == nil {
			return j, j.Schema.Validate()
		}
		// The error of the first sample is reported, as users look at the first sample.
		if first == nil {
			first = fmt.Errorf("%s: %w", shell.Line(sample.Name), err)
		}
	}
	if first == nil {
		return nil, errors.New("there are no samples")
	}
	return nil, fmt.Errorf("no usable sample among %d; the first: %w", l.len(), first)
}
