package prepare

import (
	"iter"

	"github.com/penstock/penstock/prepare/internal/execute"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// blocks returns the samples of the source in blocks. This works if records store the fields of the source unchanged:
// all have a fixed size or are text, and only the values of a sample are needed.
func (r *run) blocks(j *execute.Job) (iter.Seq2[source.Sample, error], bool) {
	src, ok := r.src.(source.Blocked)
	if !ok || j.Digest || j.Stored || j.Named || r.commits != committer(r) || len(j.Fields) != len(j.Source) {
		return nil, false
	}
	for i, f := range j.Fields {
		if !field.Copies(f) || j.Source[i].Ragged && j.Source[i].Content != tensor.Text || j.Source[i].Derived {
			return nil, false
		}
	}
	blocks := src.Blocks()
	if blocks == nil {
		return nil, false
	}
	return func(yield func(source.Sample, error) bool) {
		for b, err := range blocks {
			if !yield(execute.BlockOf(b), err) {
				return
			}
		}
	}, true
}

// commitBlock enters the samples of a block in the order of the source, and gives the records to add.
func (r *run) commitBlock(s *execute.Slot, add func(*execute.Slot) error) error {
	f := s.Block
	r.progress.Add(int64(f.Samples()))
	before := r.log.samples
	for i := range f.Odd { // an error says how many samples there were
		r.log.samples = before + int64(f.OddAt(i)) + 1
		if err := r.leaveOut(&f.Odd[i]); err != nil {
			return err
		}
	}
	r.log.enterBlock(before, f)
	return add(s)
}

// enterBlock adds the samples of a block to the fingerprint, after the first before samples.
func (l *runLog) enterBlock(before int64, f *execute.Block) {
	l.samples = before + int64(f.Samples())
	l.bytes += f.Size
	l.names.Write(f.Names)
	l.print.Write(f.Prints)
}
