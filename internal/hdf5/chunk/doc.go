// Package chunk reads the records of HDF5 datasets that cannot be used in place (chunked,
// compressed, big endian) and judges how they are stored. It uses no libhdf5; package encode
// makes chunks.
//
//	f, err := meta.Open(file, size)
//	d, err := f.Dataset("images")
//	r, err := chunk.NewMapped(mapping, d, chunk.Options{Pool: pool})   // or NewReader(file, d, ...)
//	err = r.Records(ctx, dst, 0, 256)              // records [0, 256)
//	err = r.Gather(ctx, dst, []int{812, 3, 40711}) // in any order
//
// Both group what is wanted by chunk, so that a chunk is inflated once a call, by the workers
// of the Pool in parallel, and straight into dst where it is whole records that are all wanted.
// Chunks that are wanted in part stay in a cache, so that neighbors that are read next cost
// a copy; and where calls go on in order, one chunk after the other, workers that have nothing to do
// inflate the next ones meanwhile. A fault in a mapping whose file was cut is an error, in helping goroutines too.
// Errors are of type *Error, or speak of a bad argument; memory of the wrong length panics.
//
// Undone are deflate, shuffle, fletcher32 (verified, like the checksum of deflate), lzf and the filters of Codec, in
// any order, with the filter mask of each chunk: one that compresses, and scaleoffset or nbit before any but lzf.
// Chunks may have any shape. Those that were never written have the fill value.
//
// # Memory
//
// The Pool holds up to three chunks a worker, the cache of a Reader Options.CacheBytes or
// Workers+1 chunks, whichever is more, and a call 40 bytes for each run of records. No memory is
// taken for a chunk that is larger than its stored bytes can expand to, so a file of n bytes costs
// at most 1032 n for each of those, 32768 n with zstd, blosc and bzip2, or 64 MiB with a filter
// that stores one number many times in no bits. After the first calls nothing is allocated.
//
// # Back ends
//
// Without tags, inflating is code of this package, which knows both ends of a chunk and so is
// faster than decoders of streams. With -tags libdeflate (and cgo) it is libdeflate's, which
// reads the same files to the same bytes and refuses the same corruption. Backend says which it
// is. -tags libzstd does the same to zstd, in package stream.
package chunk
