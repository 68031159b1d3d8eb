package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/producer"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// fieldsInput is the input of a journal that has the fields of a stream, for a producer that
// continues it.
const fieldsInput = "fields of the stream"

// digestInput is the input of a journal that has the digest of the inputs of the samples.
const digestInput = "digest of the inputs"

// RunProduced is Run with samples that another process sends: see package producer.
func RunProduced(ctx context.Context, c Config, in io.Reader, out io.Writer, progress Progress) (*Summary, error) {
	p, err := producer.Open(ctx, in, out)
	if err != nil {
		return nil, err
	}
	if c.Rank.Size > 0 && p.Begin.Samples < 0 {
		return nil, errors.New("--rank: the number of samples of all ranks must be known; the producer has to say it")
	}
	c.Checkpoint = p.Begin.Every()
	s, err := setup{Config: c, progress: progress, producer: p}.run(ctx)
	if err == nil && !p.Started() { // it was complete, so that nothing was opened
		err = p.Answer(producer.Start{First: s.Source.Samples, End: s.Source.Samples, Complete: true})
	}
	return s, err
}

// openProduced makes the producer start where the previous run has ended. base is of the dataset that is appended to.
func openProduced(c setup, base *store.Manifest) (source.Source, error) {
	p, begin := c.producer, c.producer.Begin
	start := producer.Start{End: begin.Samples}
	if w := c.Rank; w.Size > 0 {
		start.First, start.End = w.Span(begin.Samples)
	}
	if dest := continued(c); dest != "" {
		inputs, _, kept, err := write.ReadUnfinished(dest)
		if err != nil {
			return nil, err
		}
		if was, ok := inputs[digestInput]; ok && was != begin.Inputs {
			return nil, fmt.Errorf("%s: cannot resume: it was begun with other inputs, or with these in another order; give "+
				"the same, sorted, or use --overwrite to begin again", c.Dest)
		}
		if n := len(kept.Notes); n > 0 {
			var last note
			if err := json.Unmarshal(kept.Notes[n-1], &last); err != nil {
				return nil, fmt.Errorf("%s: cannot resume: the journal's note: %w", dest, err)
			}
			start.First += last.Samples
		}
		if text := inputs[fieldsInput]; text != "" {
			start.Fields = json.RawMessage(text)
		}
	}
	if base != nil {
		var err error
		if start.Dataset, err = producer.Describe(base.Fields); err != nil {
			return nil, err
		}
	}
	if err := p.Answer(start); err != nil {
		return nil, err
	}
	return p, p.ReadFields()
}

// awaitStage waits for a program whose producer was killed: it saves its records for a moment longer.
func awaitStage(dest string) {
	for range 100 {
		if err := write.CheckDest(dest, write.StageOptions{Overwrite: true}); !errors.Is(err, store.ErrBusy) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// producedBefore returns the summary of a part that exists. Its producer needs to
// send nothing. The merge checks that the parts have one plan.
func producedBefore(c setup, turn *part.Turn) (*Summary, error) {
	begin := time.Now()
	p := &part.Part{Path: c.Rank.Path(c.Dest)}
	for _, path := range c.partPlaces(p) {
		old, err := part.Read(path)
		if err != nil || old.There() != nil {
			continue // it is made now
		}
		if n := c.producer.Begin.Samples; old.Plan.Source.Samples != n {
			return nil, fmt.Errorf("%s is of %d samples, and not of %d; remove it, or replace it with --overwrite", path,
				old.Plan.Source.Samples, n)
		}
		if old.Plan.Source.Listing != c.producer.Begin.Inputs {
			return nil, fmt.Errorf("%s is of other inputs, or of these in another order; remove it, or replace it with "+
				"--overwrite", path)
		}
		r := &partRun{run: &run{setup: c, info: old.Plan.Info()}, turn: turn}
		m, err := r.made(old, nil)
		if err != nil {
			return nil, err
		}
		return r.summary(m, time.Since(begin))
	}
	return nil, nil
}

// rest returns the samples after the samples that an earlier run has completed.
func (r *run) rest(done int64) iter.Seq2[source.Sample, error] {
	if sent := r.producer.First() - r.task.first; sent != done {
		return func(yield func(source.Sample, error) bool) {
			yield(source.Sample{}, fmt.Errorf("%s: %d samples are done, and not %d as a moment ago: does another process "+
				"write there?", r.Dest, done, sent))
		}
	}
	return r.src.Samples()
}
