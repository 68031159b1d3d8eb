// Package cuda brings the batches of a loader.Loader to CUDA devices while the devices compute on earlier batches.
// It calls NVIDIA's driver, which it opens when the first Device is: nothing of CUDA is needed to build, and a
// program that imports the package runs where there is no driver, with ErrNoCUDA from Open.
//
//	dev, err := cuda.Open(0)
//	if errors.Is(err, cuda.ErrNoCUDA) {
//		... // range over the Loader itself
//	}
//	defer dev.Close()
//	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}, Allocator: dev.Allocator()})
//	defer ld.Close()
//	pf, err := cuda.New(ld, cuda.Options{
//		Devices:   []*cuda.Device{dev},
//		Fields:    []string{"images", "labels"},
//		Normalize: map[string]cuda.Normalize{"images": {Layout: transforms.CHW, Mean: mean, Std: std}},
//	})
//	defer pf.Close()
//	for b, err := range pf.Epoch(ctx, epoch) {
//		if err != nil {
//			return err
//		}
//		err = b.Wait(stream)    // the stream waits for the copy, the host does not
//		x := b.Field("images")  // float32 at x.Ptr on the device
//		...                     // queue work on stream
//		err = b.Done(stream)    // the memory is reused after that work
//	}
//
// # The pipeline
//
// A batch lives in a slot: memory of a device, a stream, two events. Prefetch+1 slots a device
// go round.
//
//	Loader's workers   gather into page-locked memory             batch k+3
//	a goroutine        slot's stream: wait for used of k-1, copy,
//	                   normalize, record copied                   batch k+2
//	the bus            copies                                     batch k+1
//	the consumer       Wait: its stream waits for copied; work;
//	                   Done: its stream records used              batch k
//
// The host waits in only two cases: the goroutine waits for a slot when the consumer is slower; and the Loader gets
// its memory back when the copy of the batch is done and the copy of the next batch is queued. The consumer's loop
// body runs ahead of its device in the same way, by as many batches as there are slots: it reuses one only after
// work that is recorded.
//
// # Memory
//
// A device holds (Prefetch+1) times the bytes of a batch, with normalized fields before and
// after. On the host there is the Loader's ring, page-locked by Device.Allocator. Without that,
// the driver would copy such memory twice and hold up the host meanwhile: a Prefetcher then
// has page-locked memory of its own, another (Prefetch+1) batches, to which it copies first.
// Direct reads the dataset's own mapping instead, where that can be page-locked. Stats says
// how many bytes went which way, and what was refused and why.
//
// # Several devices
//
// Batch s of an epoch goes to device s modulo their number, whatever was iterated before.
// Each has its own slots, so that none waits for another longer than the order of batches
// demands. Page-locked memory serves all of them.
//
// # Ending
//
// A Prefetcher is closed first, then the Loader, whose memory it copies from, then streams of Device.NewStream, then
// the Devices: defers in the order of the example do that. Every Close waits until no device uses the memory that it
// frees. A context that is cancelled, an error, a panic or a break ends the goroutine before the loop is left.
//
// # Threads
//
// The driver keeps its current context per thread, while goroutines move between threads.
// Every call here sets the context on a thread that is locked for the time; a context that
// other code set on the same thread is not restored. All devices are used by their primary
// contexts, which PyTorch, XLA and the CUDA runtime share.
package cuda
