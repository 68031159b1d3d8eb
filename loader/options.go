package loader

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/sys/rank"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/loader/sampler"
)

// Options configures a Loader. The zero value of every field is usable except BatchSize.
//
// The content of batches depends on BatchSize, Sampler, Seed, World, DropLast, Fields, Transforms,
// Collate and OnError, and on nothing else.
type Options struct {
	BatchSize int             // records per batch of this process; must be > 0
	Sampler   sampler.Sampler // which record comes when; nil means Sequential
	Seed      uint64          // of the order and of the records' random streams
	// which slice of the global batch is this process's: see WorldFromEnv; the zero World is one process
	World    World
	DropLast bool // leave out a last global batch that is not full

	Fields     []string             // the fields that batches have, in this order; none means all of the Source
	Transforms map[string]Transform // by field; fields that are not named stay as they are
	Collate    Collate              // a function on whole batches

	// Masks, boxes and keypoints on an image, and fields of instances that a SanitizeBoundingBoxes removes, go where an
	// Images in Transforms brings the pixels. A Transform of their own comes after that, such as Pad of boxes.
	// Contents says which fields these are, where the Source does not, by field: tensor.Mask, tensor.Boxes or
	// tensor.Keypoints, HWC or CHW for pixels, or Independent. A field that may be one of them, and has no content, is an error.
	Contents map[string]string

	OnError OnError      // the handling of records that cannot be read or transformed
	Report  func(*Error) // is called for every record that OnError skips, by any goroutine; may be nil

	// Workers is the number of goroutines that fill batches; Synchronous means none. Batches that
	// are views of warm memory need none.
	//
	// 0 has the Loader find the number with which the loop is fastest, and of two that are as good
	// the smaller one. It begins with one fewer than this process's share of the cores, compares
	// windows of batches, and keeps testing, less and less often, as long as it runs: up to that share,
	// or to 4 if that is more. So it adapts when caches become warm or the training step needs the
	// cores. If workers gain nothing, the goroutine of the loop makes the batches. Stats.Workers is
	// the number.
	Workers int

	// Prefetch is the number of finished batches that are kept ready. Keep may hold at most as
	// many. 0 means 2.
	Prefetch int

	// Unordered hands out batches in the order in which they are done, so that a slow one
	// holds nobody up. State stays exact.
	Unordered bool

	// Allocator is where buffers come from: Locked, or the Allocator of a CUDA device, for example. nil means
	// ordinary memory of the process.
	Allocator Allocator

	// Budget is the most bytes that buffers may take: to keep to it, Prefetch and then
	// Workers are lowered. Records from storage that are to be transformed are gathered in what is
	// left, up to 64 MiB; where fewer than one for each worker fit, they are read one by one, which is
	// slower. 0 means no limit.
	Budget int

	// Timeout is the longest wait for one batch; 0 means no limit. With a Timeout, records
	// are read one by one and every batch is made by a worker, so that the error can name the
	// record that is stuck.
	Timeout time.Duration

	fewest, most int // that Workers may become; set by withDefaults
}

// Synchronous as Options.Workers fills each batch in the goroutine that asks for it: no
// other goroutine is started, and a panic of the Source or of a Transform passes through
// with its stack.
const Synchronous = -1

// OnError says how a record that cannot be read or transformed is handled. In each case,
// batches keep their size, so that all ranks take the same number of steps; and the
// replacement depends on nothing but the record's place, so that it is the same for any
// number of workers.
type OnError int

const (
	// Fail ends the epoch with an Error that names the record.
	Fail OnError = iota
	// Backfill puts another record in the place of a bad one, in all fields, drawn from the same
	// epoch by a hash of (seed, epoch, position): the first of 16 whose fields can all be read.
	// Batch.Mask is false there, because the other record also comes at its own position.
	Backfill
	// Blank leaves the record's place in the batch filled with zero bytes, in all fields, which
	// no Transform has changed, and no rows of fields that Pad makes one length of. Batch.Mask is false there.
	Blank
)

// Limits of the options, far below the sizes whose products would overflow.
const (
	maxBatch    = 1 << 30 // records
	maxWorld    = 1 << 20 // processes
	maxWorkers  = 1 << 12
	tryWorkers  = 4 // at most, on few cores, if Workers is 0: some of them may wait for storage
	maxPrefetch = 1 << 16
	maxRing     = 1 << 44 // bytes of virtual memory
)

// withDefaults returns o with its zero values replaced. With a Timeout at least one worker stays: a
// loop that makes its own batches has nobody to watch it.
func (o Options) withDefaults() Options {
	o.World.Size = max(1, o.World.Size)
	o.fewest, o.most = o.Workers, o.Workers
	if o.Workers == 0 {
		cores := runtime.GOMAXPROCS(0) / max(1, o.World.LocalSize)
		o.Workers = max(1, cores-1)
		o.most = max(tryWorkers, cores)
		if o.Timeout > 0 {
			o.fewest = 1
		}
	}
	if o.Prefetch == 0 {
		o.Prefetch = 2
	}
	if o.Sampler == nil {
		o.Sampler = sampler.Sequential{}
	}
	return o
}

// maxWorkers returns how many goroutines may fill batches at most.
func (o Options) maxWorkers() int { return max(0, o.Workers, o.most) }

// slots returns how many batches exist at a time before the search for a number of workers adds
// any: one per worker, Prefetch finished batches, and the batch in the loop body.
func (o Options) slots() int { return o.Prefetch + max(0, o.Workers) + 1 }

// mostSlots returns how many batches may exist at a time at most.
func (o Options) mostSlots() int { return o.Prefetch + o.maxWorkers() + 1 }

// shares returns how an epoch is divided among the ranks.
func (o Options) shares() order.Shares {
	return order.Shares{Batch: o.BatchSize, Rank: o.World.Rank, Ranks: o.World.Size, DropLast: o.DropLast,
		Last: order.Last(o.World.Last)}
}

// mostStaged is how many bytes of stored records all workers stage together: 32 reads of 2 MiB, which keep storage
// busy.
const mostStaged = 64 << 20

// stage returns how many bytes of stored records each worker, and the loop itself, may stage: a
// share of mostStaged, or of the bytes that Budget leaves. Ragged fields take the rest of a Budget
// for their rows, so that nothing is left to stage.
func (o Options) stage(fields []fill.Field, stride int) int {
	room := mostStaged
	if o.Budget > 0 {
		room = min(room, o.Budget-o.mostSlots()*stride)
		if slices.ContainsFunc(fields, func(f fill.Field) bool { return f.Ragged }) { // whose rows have the rest
			room = 0
		}
	}
	return room / (o.maxWorkers() + 1)
}

// validate returns everything that is wrong with o, except the fields.
func (o Options) validate() error {
	var errs []error
	inRange := func(name string, v, least, most int) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%s is %d; it must be from %d to %d", name, v, least, most))
		}
	}
	inRange("BatchSize", o.BatchSize, 1, maxBatch)
	inRange("World.Size", o.World.Size, 1, maxWorld)
	inRange("World.Rank", o.World.Rank, 0, max(1, o.World.Size)-1)
	inRange("World.Last", int(o.World.Last), int(LastEqual), int(LastUneven))
	if o.Workers != Synchronous {
		inRange("Workers", o.Workers, 1, maxWorkers)
	}
	inRange("Prefetch", o.Prefetch, 1, maxPrefetch)
	inRange("OnError", int(o.OnError), int(Fail), int(Blank))
	if o.Budget < 0 || o.Timeout < 0 {
		errs = append(errs, fmt.Errorf("a Budget of %d and a Timeout of %v: neither may be negative", o.Budget, o.Timeout))
	}
	if o.Timeout > 0 && o.Workers == Synchronous {
		errs = append(errs, errors.New("a Timeout needs Workers: nobody watches a goroutine that fills its own batches"))
	}
	return errors.Join(errs...)
}

// validateEpoch returns an error for an order that does not suit the Source, or that leaves no
// batch. A training loop over no batches ends at once and without an error, which is noticed late.
func (o Options) validateEpoch(src Source) error {
	if err := sampler.Validate(o.Sampler, src.Len()); err != nil {
		return err
	}
	seq := o.Sampler.Epoch(src.Len(), o.Seed, 0)
	if n := seq.Len(); o.DropLast && n > 0 && order.New(o.shares(), 0, seq).Steps == 0 {
		return fmt.Errorf("DropLast leaves no batch at all: an epoch has %d records and a batch of all ranks %d", n,
			o.shares().Global())
	}
	if o.World.Last != LastEqual && sampler.BatchesOf(seq, false) != nil {
		return errors.New("the Sampler makes batches itself, each of which all ranks divide equally; use LastEqual")
	}
	return nil
}

// fit lowers Prefetch and then Workers until the ring keeps to Budget. Prefetch goes first, because
// fewer workers make every batch slower, and fewer finished batches matter only when batches vary.
// Two finished batches stay where there is room for them, as a caller that keeps the batch of its
// last step would otherwise wait for each batch.
func (o Options) fit(stride int) (Options, error) {
	least := 3
	if o.maxWorkers() == 0 {
		least = 2
	}
	if o.Budget == 0 || stride == 0 { // without a ring, the buffers of ragged fields share the Budget
		return o, nil
	}
	if least*stride > o.Budget {
		return o, fmt.Errorf("a Budget of %d bytes is too small: a batch has %d, and %d of them are the least that works; "+
			"lower BatchSize", o.Budget, stride, least)
	}
	workers, fewest := max(0, o.Workers), 1
	if o.Budget/stride > least {
		fewest = min(o.Prefetch, 2)
	}
	o.Prefetch = max(fewest, min(o.Prefetch, o.Budget/stride-workers-1))
	if most := o.Budget/stride - o.Prefetch - 1; workers > 0 {
		o.Workers = max(1, min(o.Workers, most))
		o.most = min(o.most, most)
	}
	return o, nil
}

// World says which of several training processes this one is. Each takes its contiguous
// slice of the global batch, BatchSize*Size records, so that a step trains on the same
// records for any Size with the same global batch. The zero value is a single process.
type World struct {
	Rank int // of this process, from 0
	Size int // processes that train together; 0 means 1
	// of those on this host, who share its cores; 0 means 1, also for processes that are bound to cores of their own
	LocalSize int
	// how the last global batch of an epoch is divided, if it is not full and DropLast does not leave it out
	Last Last
}

// Last is how the last global batch of an epoch is divided among ranks, if it is not full.
type Last int

const (
	// LastEqual has all ranks take as many records. Where the batch cannot be divided evenly, the last ranks repeat
	// records from the start of the epoch, fewer than there are ranks, whose Mask is false.
	LastEqual Last = iota
	// LastFull has each rank take BatchSize records. Those that the batch lacks are from the start of the epoch.
	LastFull
	// LastUneven repeats no record: the first ranks take BatchSize records, and the others fewer, or have a batch less.
	LastUneven
)

// WorldFromEnv returns the World that the launcher of this process put into the
// environment: torchrun, Kubeflow, Open MPI, MVAPICH, MPICH, Intel MPI, srun, a Kubernetes
// Indexed Job, an array of AWS Batch, Google Cloud Batch or Cloud Run. Without any of their
// variables it is the zero World. One of a pair without the other is an error, as guessing
// would have every process train on the same data.
//
// Kubernetes gives a pod its index but not the number of completions: the Job's template
// must pass that as JOB_COMPLETIONS.
func WorldFromEnv() (World, error) {
	p, err := rank.Training(os.LookupEnv)
	if err != nil {
		return World{}, fmt.Errorf("loader: %w; a World that is given by hand needs no environment", err)
	}
	return World{Rank: p.Rank, Size: p.Size, LocalSize: p.Local}, nil
}
