// Package mirror trains from a dataset in a bucket: Open makes it a Source of package loader,
// like the Dataset of package mmapds that it keeps on local disk.
//
//	bucket, u, err := cloud.Open(ctx, "s3://lab/train?region=eu-west-1")
//	ds, err := mirror.Open(ctx, bucket, u.Key, mirror.Options{CacheDir: "/scratch/penstock"})
//	ld, err := loader.New(ds, loader.Options{BatchSize: 256, Sampler: sampler.Shuffle{}})
//
// # The mirror
//
// Under CacheDir each dataset has a folder with the same files as in the bucket, at first
// without content: holes on disk. Blocks of records (one checksum each: a record of 4 KiB or more,
// else about 64 KiB) are written to their place as they arrive, after a check of their CRC32C. So
// reading is mapping, as it is for local datasets, and once all blocks are present the mirror is a
// local dataset: a read then costs nothing in this package but the check of one flag.
//
// An HDF5 file is one file there. Open fetches its metadata: everything except the payload of large
// arrays. Arrays that lie in one piece are blocks of records as above. In arrays of
// chunks, compressed or not, a block is a chunk, at the place and of the size that the file's
// index says, or several small ones side by side; the chunks of all arrays are numbered together, in
// the order of the file. The index is read by ranges, the nodes of a level of its tree side by
// side. Chunks that were never written are not fetched. Blocks without a checksum of the dataset's
// are compared with what they were when they came; a chunk whose filters find it corrupt is
// fetched again, up to three times.
//
// Processes of one host share the mirrors. A file that all of them map records which blocks are
// present; if one process fetches a block, the others wait for it. Whatever kills a process, its
// locks end with it, and unfinished blocks are fetched again. Blocks that were present before a
// process began are compared with their checksums when it first uses them.
//
// # Requests
//
// A loader names the records of coming batches long before it needs them, in its own order.
// If the whole dataset fits in the cache, requests grow from single records, so that the first
// batch comes soon, to 4 MiB: the records next to one will be needed, too. Else they are the
// records themselves, joined if they are adjacent. The number of concurrent requests adapts to the
// speed of the link. Nothing is fetched twice, but for what had to be taken out of the mirror to
// keep it within CacheBytes, or had no room on disk; then it is held in memory for a while, and
// Stats.Streaming says why.
//
// Mirrors need Linux.
package mirror
