// Package penstock is the root of a toolkit that turns raw samples into datasets and feeds them to a training step. It
// has no code. A training program imports
//
//   - [github.com/penstock/penstock/mmapds], which opens a dataset: a folder of memory-mapped arrays, an HDF5
//     file or a Zarr group
//   - [github.com/penstock/penstock/loader], which makes batches of it in worker goroutines
//   - [github.com/penstock/penstock/loader/sampler], the order of the records
//   - [github.com/penstock/penstock/transforms], operations on samples such as decoding, crops and normalization
//   - [github.com/penstock/penstock/tensor], the arrays that batches hold
//
// These need no cgo, and their other modules are six. An epoch of a dataset:
//
//	ds, err := mmapds.Open("ds")
//	if err != nil {
//		return err
//	}
//	defer ds.Close()
//	ld, err := loader.New(ds, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 42})
//	if err != nil {
//		return err
//	}
//	defer ld.Close()
//	for b, err := range ld.Epoch(ctx, 0) {
//		if err != nil {
//			return err
//		}
//		step(tensor.As[uint8](b.Field("images")), tensor.As[int64](b.Field("labels")))
//	}
//
// Package store writes datasets. The command cmd/penstock makes, inspects and measures them.
package penstock
