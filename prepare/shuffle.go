package prepare

import (
	"context"
	"iter"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/store"
)

// shuffled is a source with its samples in random order.
type shuffled struct {
	source.Indexed
	order permute.Permutation
}

// storedOrder is the number of the permutation of a dataset: not an epoch, which counts from 0, so that
// a loader with the same seed has another permutation.
const storedOrder = -1 << 61

// newOrder returns the random order in which n samples are stored.
func newOrder(n int64, seed uint64) permute.Permutation {
	return permute.New(int(n), seed, storedOrder)
}

// Samples implements source.Source.
func (s shuffled) Samples() iter.Seq2[source.Sample, error] {
	return source.InOrder(s, 0)
}

// Sample implements source.Indexed.
func (s shuffled) Sample(i int64) (source.Sample, error) {
	return s.Indexed.Sample(int64(s.order.At(int(i))))
}

// runShuffled builds the dataset in a random order. A source that can only be read from its
// beginning is first written to a dataset next to the destination, whose records are then copied:
// meanwhile it takes twice the space.
func (r *run) runShuffled(ctx context.Context) (*store.Manifest, error) {
	if _, ok := r.src.(source.Indexed); ok {
		if err := r.shuffle(ctx); err != nil {
			return nil, err
		}
		return r.run(ctx)
	}
	c := &collection{run: r}
	defer c.close()
	collected, err := c.make(ctx)
	if err != nil {
		return nil, err
	}
	src, err := kinds.Open(ctx, c.path(), source.Options{Kind: "flat"})
	if err != nil {
		return nil, err
	}
	defer src.Close()
	second := newRun(r.copies(), shuffled{src.(source.Indexed), newOrder(collected.Records, r.Shuffle.Seed)})
	second.collected, second.collector = collected, r.log
	m, err := second.run(ctx)
	r.kept, r.resumed = max(r.kept, second.kept), max(r.resumed, second.resumed)
	if err != nil {
		return nil, err
	}
	return m, c.remove()
}

// shuffle puts the samples of the source, which is a source.Indexed, into the order of the dataset.
func (r *run) shuffle(ctx context.Context) error {
	if err := r.verifySource(ctx); err != nil {
		return err
	}
	r.src = shuffled{r.src.(source.Indexed), newOrder(r.info.Count, r.Shuffle.Seed)}
	return nil
}

// verifySource reads a dataset from its beginning to its end, so that its checksums are compared:
// records that are read one by one are not compared.
func (r *run) verifySource(ctx context.Context) error {
	info := r.src.Info()
	if info.Kind != "flat" && info.Kind != "hdf5" {
		return nil
	}
	r.progress.Begin("verifying the source", info.Count, info.Unit)
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

// copies returns the setup of a run that copies every record of the source as it is.
func (c setup) copies() setup {
	d := DefaultConfig()
	d.Source, d.Dest, d.Format, d.Shuffle = c.Source, c.Dest, c.Format, c.Shuffle
	d.Workers, d.ShardBytes, d.Memory, d.Compress = c.Workers, c.ShardBytes, c.Memory, c.Compress
	d.Overwrite, d.Resume, d.Checkpoint = c.Overwrite, c.Resume, c.Checkpoint
	c.Config = d
	return c
}
