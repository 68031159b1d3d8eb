package preprocess

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// shuffled is a source whose samples come in a random order.
type shuffled struct {
	source.Indexed
	order permute.Permutation
}

// storedOrder is the number of the permutation of a dataset: no epoch that counts from 0, so that
// a loader with the same seed has another one.
const storedOrder = -1 << 61

// newOrder returns the random order in which n samples are stored.
func newOrder(n int64, seed uint64) permute.Permutation {
	return permute.New(int(n), seed, storedOrder)
}

// Samples implements source.Source.
func (s shuffled) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for i := range s.Info().Count {
			sample, err := s.Sample(i)
			if !yield(sample, err) || err != nil {
				return
			}
		}
	}
}

// Sample implements source.Indexed.
func (s shuffled) Sample(i int64) (source.Sample, error) {
	return s.Indexed.Sample(int64(s.order.At(int(i))))
}

// runShuffled makes the dataset in a random order. A source that can only be read from its
// beginning is made a dataset first, beside the destination, whose records then are copied:
// it takes the space twice while that lasts.
func (r *run) runShuffled(ctx context.Context) (*store.Manifest, error) {
	seed := r.config.Shuffle.Seed
	if indexed, ok := r.src.(source.Indexed); ok {
		if err := r.verify(ctx); err != nil {
			return nil, err
		}
		r.src = shuffled{indexed, newOrder(r.info.Count, seed)}
		return r.run(ctx)
	}
	defer r.release()
	collected, err := r.collect(ctx)
	if err != nil {
		return nil, err
	}
	src, err := source.Open(ctx, r.spool(), source.Options{Kind: "flat"})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	second := &run{config: r.config.copies(), collected: collected, collector: r.books, progress: r.progress}
	second.src = shuffled{src.(source.Indexed), newOrder(collected.Records, seed)}
	second.info = src.Info()
	m, err := second.run(ctx)
	r.kept, r.resumed = max(r.kept, second.kept), max(r.resumed, second.resumed)
	if err != nil {
		return nil, err
	}
	return m, r.removeSpool()
}

// verify reads a dataset from its beginning to its end, so that its checksums are compared:
// records that are read one by one are not.
func (r *run) verify(ctx context.Context) error {
	if r.info.Kind != "flat" && r.info.Kind != "hdf5" {
		return nil
	}
	r.progress.Begin("verifying the source", r.info.Count, r.info.Unit)
	defer r.progress.End()
	for _, err := range r.src.Samples() {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		r.progress.Add(1)
	}
	return nil
}

// copies returns the Config that keeps every record as it is.
func (c Config) copies() Config {
	d := DefaultConfig()
	d.Source, d.Dest, d.Format, d.Shuffle = c.Source, c.Dest, c.Format, c.Shuffle
	d.Workers, d.ShardBytes, d.Memory, d.Compress = c.Workers, c.ShardBytes, c.Memory, c.Compress
	d.Overwrite, d.Resume, d.Checkpoint, d.outbox = c.Overwrite, c.Resume, c.Checkpoint, c.outbox
	return d
}

// relabel is a job for class numbers that gives them the numbers that the classes have in
// the dataset that is appended to.
type relabel struct {
	copyField
	numbers []int64
}

func (f relabel) worker() fieldWorker { return f }

func (f relabel) do(name string, dst, value []byte) (out []byte, bad, fatal error) {
	dst, bad, fatal = f.copyField.do(name, dst, value)
	if bad == nil && fatal == nil {
		v := tensor.As[int64](tensor.Of(f.field.Spec, 1, dst))
		if v[0] < 0 || v[0] >= int64(len(f.numbers)) {
			return dst, fmt.Errorf("%s: %w: label %d of %d classes", f.field.Name, source.ErrValue, v[0], len(f.numbers)), nil
		}
		v[0] = f.numbers[v[0]]
	}
	return dst, bad, fatal
}

// newRelabel returns the job for a label whose dataset has those classes already: new names
// get numbers behind them.
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
