package mmapds

// readMode says how Gather reads records of one length that are stored as they are. All other
// records are mapped. Only tests use a mode other than modeAuto, to reach each way of reading with
// a small file.
type readMode int

// modeAuto copies from the mapping what is in memory, and reads records of 64 KiB or more that are
// not, by pread into the caller's memory, up to 32 at a time in all calls of Gather: they leave
// no trace in the page tables. Of a dataset that is more than twice as large as the memory that the process may have,
// it reads records of 4 KiB or more as modeDirect does. modeMapped has the pages brought in and copies from them, always.
// modePread reads always. modeDirect does too, by O_DIRECT past the page cache, up to 64 at a time in each call, into
// the caller's memory where that and the record are aligned to 4096 bytes and else through buffers that are: for
// datasets much larger than memory, which would only evict other files from the cache. If the system does not support
// that, modeDirect is modePread, and DescribeReads says so.
const (
	modeAuto readMode = iota
	modeMapped
	modePread
	modeDirect
)

// always reports whether records are read by pread whether or not they are in memory.
func (r readMode) always() bool { return r >= modePread }
