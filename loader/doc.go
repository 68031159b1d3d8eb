// Package loader serves a dataset as a stream of batches: filled by several goroutines, and
// the same batches for any number of them.
//
//	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}, Seed: 42})
//	defer ld.Close()
//	for epoch, batches := range ld.Epochs(ctx, 10) {
//		for b, err := range batches {
//			if err != nil {
//				return err
//			}
//			x, y := tensor.As[uint8](b.Field("images")), tensor.As[int64](b.Field("labels"))
//			...
//		}
//	}
//	fmt.Println(ld.Diagnose()) // one sentence that says what limits this loop
//
// # Copies
//
// A batch whose records follow each other in the dataset, whatever the Sampler that asked
// for them, is a view of the dataset's own memory: no byte is copied. Any other batch is
// gathered into a ring of buffers that are allocated once and reused; a Transform works from
// the dataset's memory to the ring, so that normalizing, cropping and mirroring need no
// further copy. Stats counts both kinds. After the first batch neither allocates.
//
// Building a batch of warm views is cheaper than handing it from one goroutine to another, so the
// loop builds it inline; Stats.Inline counts these. Other batches go to the workers, a few batches
// ahead. While it waits for one, the loop spins for about 50 µs before it sleeps, if a core is idle
// and spinning has recently paid off.
//
// # Sources
//
// The Loader needs only a [Source]. A Source can do more, by exported interfaces:
//
//	RaggedSource     fields of variable length
//	GridSource       fields that are stored in chunks of N-D arrays, for windows
//	ChunkSource      records that are stored in chunks, for sampler.ChunkShuffle
//	ChunkedSource    records that are not one piece of memory are gathered
//	MappedSource     views are brought into memory before they are handed out
//	FaultSource      a read of mapped memory that failed is explained
//	CheckedSource    a file that was truncated is noticed at the end of the epoch, also where its bytes read as zeros
//	NamedSource      errors name the sample that a record was built from
//	ClassedSource    combine.NewConcat refuses sources with other classes
//	BoundedSource    a filter reads only blocks of records that may differ
//	RemoteSource     records are fetched before they are needed
//	DescribedSource  errors say where a record is stored, and Stats how it was read
//	Identifier       Resume refuses another dataset
//	GenerationSource Resume takes other generations of the datasets if their records are the same
//
// *mmapds.Dataset implements all but RemoteSource, and *mirror.Dataset all. [New] refuses a Source
// that has some methods of an interface and not all.
//
// # Variable length
//
// A field whose records vary in length is handed out as rows back to back, with Batch.Offsets; Pad
// pads them to one length, sampler.NewBucket puts records of similar lengths into batches,
// and combine.NewPacked is a Source of rows of one length with several records in each: with
// positions, segments and cu_seqlens, as training of language models requires.
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
// At most Prefetch+Workers+1 batches exist at a time, kept ones included: Workers of them being filled, one in the
// loop body, and Prefetch finished or kept. The ring holds that many times the bytes of a batch, each field rounded
// up to a whole page, and is allocated when the first batch has to be copied. If the Loader tunes the number of
// workers, it adds a buffer for each that it tries. A dataset that is only ever viewed needs no ring. If there is no
// memory for more, it keeps those it has. Options.Budget is a limit to the ring that is kept; too many kept batches
// are an error of Keep. Next to the ring there are 9 bytes for each record of those batches, the values of fields of
// variable length, which grow to the largest batch, and the memory that Transforms need for themselves. A worker has
// memory for one stored record where the Source has none to show. While records that are to be transformed come from
// storage, the workers gather some of them in advance: up to 64 MiB in all, a share for each, and with a Budget no
// more than the ring leaves of it. Records that are longer than a share are read one by one. Orders need at most 8
// KiB, but for the tables that are handed to them.
//
// # Determinism
//
// Batch s of an epoch, as all ranks together have it, is a function of the dataset, the
// Sampler, the Seed, the epoch's number, s and the global batch BatchSize*World.Size, and of
// nothing else: not of Workers, whatever number the Loader finds, nor of Prefetch, the number
// of ranks, or what was iterated before. So are the random choices of a record's Transform, by
// (seed, epoch, record). No state is global. A Collate sees the batch of one rank, so that
// mixing records depends on the World.
//
// State is a position in such a run, and Resume continues there with the next batch,
// with other Workers and another World too.
//
// # Ranks
//
// Each rank has the same number of batches of the same lengths. If the number of records of
// an epoch is not a multiple of the ranks, the last batch repeats some from the epoch's start;
// Batch.Mask is false for these, so that an evaluation can leave them out.
//
// # Ending
//
// Leaving the loop by break, return or panic, an error, or a cancelled context ends the
// epoch: the filling that is under way is cancelled through its context and waited for, so
// that nothing reads the dataset for this loop once it is left. The one exception is a read
// that hangs for longer than Options.Timeout: see ErrTimeout. The goroutines stay for the
// next epoch, and end at Close.
//
// A batch that is a view holds a lease of the Source, which ends with the batch. Closing a
// Source that waits for its leases, as *mmapds.Dataset does, therefore belongs after the
// loop and after the Release of kept batches; deferring the Close of the dataset before
// the Close of the Loader has them come in the right order.
//
// # Looking inside
//
// Stats has the numbers, for expvar.Func or, by WriteMetrics, for Prometheus, and Diagnose
// reads them. The goroutines carry the profiler label "loader", and what they do shows as
// regions in an execution trace.
package loader
