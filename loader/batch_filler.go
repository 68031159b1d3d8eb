package loader

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/order"
)

// BatchFiller makes single batches in the caller's own memory and goroutine: for a framework's
// tensors, or to look at a batch out of order. A BatchFiller is independent of the Loader's
// iteration. It serves one goroutine, and there may be any number of BatchFillers. After the first
// batch it allocates nothing.
type BatchFiller struct {
	set   *setup
	w     *fill.Filler
	costs *costs
	b     *fill.Batch
	view  MutableBatch // of b
	epoch *order.Epoch
}

// BatchFiller returns a new BatchFiller with its own state of Transforms and Collate.
func (ld *Loader) BatchFiller() (*BatchFiller, error) {
	w, err := ld.setup.newFiller(-1)
	if err != nil {
		return nil, err
	}
	c, b := ld.setup, ld.setup.plan.NewBatch(-1)
	return &BatchFiller{set: c, w: w, costs: &ld.pool.others, b: b, view: c.mutable(b)}, nil
}

// Fill makes one batch of an epoch. dst has one slice per field, in the order of Loader.Specs. Each
// slice has room for at least BatchSize records and is aligned for the field's elements; for a
// field of variable length it must have room for the batch's rows. Bytes of dst after the records
// are arbitrary. The returned batch uses dst, and is valid until the next call.
func (f *BatchFiller) Fill(ctx context.Context, epoch, step int, dst ...[]byte) (_ *MutableBatch, err error) {
	if err := f.aim(epoch, step, dst); err != nil {
		return nil, err
	}
	// A fault in mapped memory, such as of a truncated file, then is a panic that the Filler turns
	// into an error. The setting belongs to this goroutine only, and its old value is restored.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	b, filler := f.b, f.w
	filler.Start(0)
	defer b.Release()
	err = filler.Choose(ctx, b, f.epoch, step, 0)
	if err == nil {
		err = filler.Fill(ctx, b, 0, b.Len())
	}
	if err == nil {
		err = filler.Seal(ctx, b)
	}
	if err != nil {
		return nil, batchError(epoch, step, f.set.located(ctx, b, err))
	}
	f.costs.take(filler)
	return &f.view, nil
}

// aim checks epoch, step and memory of the next batch before anything is read. A slice that is too
// short would otherwise be noticed in the middle of a copy.
func (f *BatchFiller) aim(epoch, step int, dst [][]byte) error {
	c := f.set
	if f.epoch == nil || f.epoch.Number != epoch {
		f.epoch = c.epoch(epoch)
	}
	if step < 0 || step >= f.epoch.Steps {
		return fmt.Errorf("loader: fill: epoch %d has no batch %d: it has %d", epoch, step, f.epoch.Steps)
	}
	if len(dst) != len(c.plan.Fields) {
		return fmt.Errorf("loader: fill: memory for %d fields; batches have %d", len(dst), len(c.plan.Fields))
	}
	for i := range dst {
		if need := c.opts.BatchSize * c.plan.Fields[i].Size; len(dst[i]) < need {
			return fmt.Errorf("loader: fill: %d bytes for field %q; %d records need %d", len(dst[i]), c.plan.Fields[i].Out.Name,
				c.opts.BatchSize, need)
		}
	}
	f.b.SetMemory(dst)
	return nil
}
