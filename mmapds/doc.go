// Package mmapds opens a dataset as random access to mapped records: a flat folder, an HDF5
// file or a folder of Zarr. It is pure Go; HDF5 files made by h5py or others open too, compressed or not.
//
//	ds, err := mmapds.Open("data/train")
//	...
//	defer ds.Close()
//	x, err := ds.Slice("images", 0, 256) // records [0, 256): a view of the file, no copy
//	pixels := tensor.As[uint8](x)
//
// Records gives a field as a list, for code that reads records one by one: at any place, or, two to
// four times as fast for small ones, by Iter in an order that is known.
//
// A ragged field, whose records have lengths of their own, is read by SliceRagged and
// GatherRagged: rows back to back, and offsets that say where each record starts.
//
// # Inside
//
// A [Dataset] has a field for each field of its schema, and a field one column, or two if it is
// ragged: values and offsets. Reads go down these steps:
//
//	Dataset   checks names and lengths; live translates record numbers where records are deleted
//	field     turns ragged records into runs of rows
//	reader    has a Pager fetch the rows that are not in the files yet
//	answer    reads rows: mapped (memory of the file, or pread), packed (decoded chunks),
//	          heldRows (bytes of the Pager), each of them within verified if checksums are compared
//
// [Records] skips most of them for a single record that is in memory. What Open finds out never
// changes afterwards; what does change is atomic or has a lock of its own, so that readers on many
// CPUs do not wait for each other.
//
// # Lifetimes
//
// A view is memory of the mapping. It is valid until Close. A goroutine that holds views while another may call Close
// takes a lease: Retain before, Release after. Close refuses new leases, waits until the last lease is released, and
// unmaps. Package loader does this automatically. In builds with -tags invariants a view that outlives the dataset
// always faults at its first use.
//
// # Reading
//
// A touch of memory that is not there has the system read around it, by as much as the disk reads ahead, which may be
// megabytes, and blocks a P of the Go scheduler. So bytes that are not in memory are read, by their size, before they
// are touched: Gather, Iter and Warm read them in system calls, At and Slice only start the reads, and Prefetch starts
// reads for later. At finds out when records are read in their order, and then reads many together. Large records that
// are not in memory are read by Gather into the caller's memory, 32 at a time.
//
// Pages that were brought in are noted, so that they cost no system call again. Four times a second some are looked at:
// if the kernel took any back, all are brought in again, and none is noted for four seconds. None is noted of a dataset
// that is larger than memory. Of one that is more than twice as large, records of 4 KiB or more are read past the page
// cache, which could not hold them. DescribeReads says what was done, and why.
//
// # Packed data
//
// Data of an HDF5 file that is chunked, compressed, big endian or not aligned cannot be viewed
// in place. Slice gives a copy of it in new memory, Contiguous says so, and Gather inflates into
// what it is given: chunks in parallel, each once for all records that are asked for together.
// Filters are deflate, shuffle, fletcher32, szip, scaleoffset, nbit, lzf, bzip2, blosc,
// blosc2, bitshuffle, lz4 and zstd. Inflated chunks that were needed only in part are cached: at
// most 64 MiB per field, or one chunk per CPU and one more. Records that are read one by one in
// order use all CPUs, too: the next chunks are inflated ahead. "penstock inspect" prints what
// reading such a file costs, "penstock preprocess" writes one that can be mapped. Files that
// "penstock preprocess --compress gzip" made are packed, too, and verified like others.
//
// # Verified reads
//
// WithVerify has Gather, Warm and Slice compare records with their CRC32C before they hand them
// out; a difference is a store.CorruptionError, which names field, records, file and offset. Slice
// usually follows Warm, and checks blocks once even with VerifyAlways. Fields without checksums, as
// in files that other programs wrote, are not checked, and DescribeReads says so. Blocks that were
// checked and then evicted from memory are read again without a check, unless by VerifyAlways.
//
// # Truncation
//
// A file that is cut short while it is mapped makes a plain access die with SIGBUS. Gather,
// Warm and whatever runs inside Guard get an error instead, which names file, field and
// record.
package mmapds
