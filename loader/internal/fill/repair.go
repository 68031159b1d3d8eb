package fill

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/order"
)

// attempts is how many records Backfill draws for one place before it gives up.
const attempts = 16

// backfillKey separates the draws of Backfill from the Sampler's and the transforms' draws with the
// same seed.
const backfillKey = 1<<16 + 4

// repair reads places [lo, hi) one by one, and replaces the records that fail. The record that
// failed first is replaced without another read: a record that can be read only now and then is not
// trusted.
func (w *Filler) repair(ctx context.Context, b *Batch, lo, hi int, first *Error, read func(i int) error) error {
	for i := lo; i < hi; i++ {
		failed := first
		if b.indices[i] != first.Record {
			err := read(i)
			if err == nil {
				continue
			}
			if failed = err.(*Error); failed.Final {
				return failed
			}
		}
		if err := w.replace(ctx, b, i, failed); err != nil {
			return err
		}
	}
	return nil
}

// replace fills place i, whose own record failed, in all fields: with zeros under Blank, and with another record of the
// epoch under Backfill. The draws of another record depend on seed, epoch and position only, and on nothing that this
// process did before, so that a resumed run, or a run with other workers, puts the same record there. A drawn record
// may fail too; after several failures in a row the Source itself is taken to be broken, and the batch fails.
func (w *Filler) replace(ctx context.Context, b *Batch, i int, failed *Error) error {
	if ctx.Err() != nil {
		return failed
	}
	w.reader.watch.at = 0
	w.reader.watch.cost.Skipped++
	if w.plan.Report != nil {
		w.plan.Report(ctx, b, failed)
	}
	b.mask[i] = false
	if w.plan.Policy == Blank {
		b.blank(i)
		return nil
	}
	key := permute.Mix64(permute.Key(w.plan.Seed, b.epoch.Number, backfillKey) + uint64(b.position+i))
	for k := range uint64(attempts) {
		at := permute.Below(permute.Mix64(key+k*0x9e3779b97f4a7c15), uint64(b.epoch.Records))
		b.epoch.Choose(int(at), 0, b.indices[i:i+1])
		if order.Outside(b.indices[i:i+1], w.plan.Source.Records.Len()) < 0 && w.fill(ctx, b, i, i+1) == nil &&
			w.reader.probeRagged(ctx, b, i) == nil {
			return nil
		}
	}
	all := *failed
	all.Err = fmt.Errorf("%w (nor can any of %d records that were drawn in its place)", failed.Err, attempts)
	return &all
}

// has reports whether the batch contains the record of an error. Otherwise repair would replace
// nothing, and the same error would come again.
func (b *Batch) has(e *Error) bool { return e.Record >= 0 && slices.Contains(b.indices, e.Record) }
