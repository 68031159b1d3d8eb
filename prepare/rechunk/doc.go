// Package rechunk writes arrays of HDF5, Zarr, .npy and datasets into Zarr with chunks of another shape, in memory that
// a budget limits: for windows, which read whole chunks.
//
//	chunks := map[string]int{"time": 24, "lat": 128, "lon": 128}
//	p, err := rechunk.NewPlan(ctx, "era5.h5", "era5.zarr", rechunk.Options{Chunks: chunks})
//	...
//	err = p.Run(ctx, nil)
//
// The array is read in boxes of whole chunks of the new shape, as large as the memory allows, so that most chunks of
// the old shape are decoded once. Files are written next to the destination and take its name when all are complete. A
// run that was stopped continues with Resume, and makes the same bytes.
package rechunk
