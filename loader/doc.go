// Package loader serves a dataset as a stream of batches: in order or exactly shuffled,
// filled by several goroutines, the same batches for any number of them.
//
//	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Order: loader.Shuffle{}, Seed: 42})
//	defer ld.Close()
//	for epoch := range 10 {
//		for b, err := range ld.Epoch(ctx, epoch) {
//			if err != nil {
//				return err
//			}
//			x, y := tensor.As[uint8](b.Field("images")), tensor.As[int64](b.Field("labels"))
//			...
//		}
//	}
//
// # Copies
//
// A batch whose records follow each other in the dataset, whatever the Order that asked
// for them, is a view of the dataset's own memory: no byte is copied. Any other batch is
// gathered into a ring of buffers that are allocated once and reused. Stats counts both.
// After the first batch neither kind allocates.
//
// # Lifetime
//
// A batch is valid in the loop body that receives it. Keep holds it for longer, until
// Release. Using a Batch after its time panics; a slice that was taken from it is not
// guarded, and must not be used after that time either: its bytes then belong to a later
// batch. In checked builds (-tags invariants, -race) the bytes of released buffers are
// overwritten with 0xCC, and Close names the line of every Keep that was never released.
//
// # Memory
//
// At most Ahead+Workers+1 batches exist at a time, kept ones included: Workers of them
// being filled, one in the loop body, and Ahead finished or kept. The ring holds that many
// times the bytes of a batch, each field rounded up to a whole page, and is allocated when
// the first batch has to be copied. A dataset that is only ever viewed needs no ring.
// Beside it there are 8 bytes for each record of those batches, for its number. Orders of
// this package need at most 8 KiB.
//
// # Determinism
//
// The records of batch s of an epoch are a function of the Order, the Seed, the epoch's
// number, s and the number of records, and of nothing else: not of Workers, Ahead, or what
// was iterated before. No state is global.
//
// # Ending
//
// Leaving the loop by break, return or panic, an error, or a cancelled context ends the
// epoch: the filling that is under way is cancelled through its context and waited for, so
// that nothing reads the dataset for this epoch once the loop is left. The goroutines stay
// for the next epoch, and end at Close.
//
// A batch that is a view holds a lease of the Source, which ends with the batch. Closing a
// Source that waits for its leases, as *mmapds.Dataset does, therefore belongs after the
// loop and after the Release of kept batches; deferring the Close of the dataset before
// that of the Loader has them come in the right order.
package loader
