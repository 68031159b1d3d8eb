// Package verify compares every record of a dataset with its checksums, and all of them with the dataset's id. It reads
// from disk and maps nothing.
//
// Readers check blocks as they touch them; [Dataset] checks all of them once, in any container, also records that are
// deleted but stored. The id is a digest of all records in order, so a block that was exchanged for another with a
// correct checksum is found too. A [Result] names the records that differ, and goes on after the first.
package verify

import (
	"context"
	"errors"
	"iter"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// Options configures Dataset. The zero value is usable.
type Options struct {
	Workers  int           // how many goroutines read; 0 means GOMAXPROCS
	Progress func(n int64) // called with n more bytes checked, from one goroutine at a time; may be nil
	// Corrupt is called with each corruption, in no order, from one goroutine at a time. It may be nil.
	Corrupt func(*store.CorruptionError)
}

// Result reports the work that Dataset did.
type Result struct {
	Bytes       int64 // bytes of columns that were compared with their checksums
	Blocks      int64
	Corruptions int64
	// Identity says that the dataset's id was computed from its records, and compared with the id in the manifest:
	// data, checksums and manifest then belong together. The id is not computed for a part of a dataset, or if there
	// are corruptions.
	Identity bool
	// Unchecked lists fields without checksums, as in HDF5 files that other programs wrote.
	Unchecked []string
}

// Dataset reads every record of a dataset from disk, compares it with its CRC32C, and all records together with the
// dataset's id. It takes about 3 MiB of memory for each worker. The error is non-nil if the verification could not
// finish; corruptions are counted and reported, and are no errors.
func Dataset(ctx context.Context, d *store.Dataset, opts Options) (Result, error) {
	v := &verifier{data: d, opts: opts, identity: newIdentity(d)}
	if v.opts.Workers <= 0 {
		v.opts.Workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer v.closePacked()
	jobs := make(chan *job)
	order := make(chan *job, 2*v.opts.Workers)
	var all sync.WaitGroup
	for range v.opts.Workers {
		all.Go(func() { v.work(ctx, jobs) })
	}
	all.Go(func() { v.collect(order) })
	err := v.feed(ctx, jobs, order)
	close(jobs)
	close(order)
	all.Wait()
	if err = errors.Join(err, context.Cause(ctx)); err == nil {
		v.checkIdentity()
	}
	return v.result, err
}

type verifier struct {
	data     *store.Dataset
	opts     Options
	identity *identity // nil if the id is not computed
	mu       sync.Mutex
	result   Result
	files    []*os.File  // open files of packed columns
	pool     *chunk.Pool // goroutines that decompress packed columns
}

// job is a run of whole blocks of one extent, and the ends of the records in it.
type job struct {
	column *layout.Column
	shard  int
	extent layout.Extent
	first  int64         // block
	n      int64         // blocks
	record int64         // number of the first record that ends or begins in the blocks
	ends   []int64       // of values: rows at which records end, from the extent's first row on
	crcs   []byte        // for the identity: uint32 of each record
	digest []piece       // for the identity: parts of records of values, which may begin or end in other jobs
	packed *chunk.Reader // reader of the rows if the column is packed; otherwise nil
	done   chan struct{}
}

// rows returns the range of rows in the extent that the job checks.
func (j *job) rows() (from, to int64) {
	per := layout.BlockRecords(j.column.Spec.RecordBytes())
	return j.first * per, min((j.first+j.n)*per, j.extent.Count)
}

// A job has about jobBytes bytes, and at most jobRecords records.
const (
	jobBytes   = 1 << 20
	jobRecords = 1 << 16
)

func (v *verifier) feed(ctx context.Context, jobs, order chan<- *job) error {
	for i := range layout.Of(v.data).Columns {
		c := &layout.Of(v.data).Columns[i]
		var reader *chunk.Reader
		for k, e := range c.Extents {
			if e.SumsPath == "" && e.Count > 0 {
				v.unchecked(c)
				break
			}
			if c.Packed && reader == nil {
				var err error
				if reader, err = v.openPacked(c); err != nil {
					v.corrupt(&job{column: c, extent: e}, 0, max(0, c.Rows-1), err)
					break
				}
			}
			v.checkSums(&job{column: c, shard: k, extent: e, packed: reader})
			for j := range v.split(c, k, e, reader) {
				j.packed = reader
				j.done = make(chan struct{})
				select {
				case order <- j:
				case <-ctx.Done():
					return nil
				}
				select {
				case jobs <- j:
				case <-ctx.Done():
					close(j.done)
					return nil
				}
			}
		}
	}
	return nil
}

func (v *verifier) unchecked(c *layout.Column) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity.fail()
	name := v.data.Schema.Fields[c.Field].Name
	if !slices.Contains(v.result.Unchecked, name) {
		v.result.Unchecked = append(v.result.Unchecked, name)
	}
}

// split cuts an extent into jobs.
func (v *verifier) split(c *layout.Column, k int, e layout.Extent, packed *chunk.Reader) iter.Seq[*job] {
	if c.Part == layout.Values {
		return v.splitValues(c, k, e, packed)
	}
	size := c.Spec.RecordBytes()
	per := layout.BlockRecords(size)
	step := max(1, min(jobBytes/int64(size), jobRecords)/per, chunkBlocks(packed, per))
	blocks := layout.Blocks(e.Count, size)
	return func(yield func(*job) bool) {
		for first := int64(0); first < blocks; first += step {
			j := &job{column: c, shard: k, extent: e, first: first, n: min(step, blocks-first), record: e.First + first*per}
			if c.Part == layout.Offsets {
				j.record -= int64(k) // an extent has one offset more than records
			}
			if !yield(j) {
				return
			}
		}
	}
}

// checkSums checks a file of checksums as a whole, so that damage to the checksums is not blamed on the records.
func (v *verifier) checkSums(j *job) {
	e := j.extent
	if e.SumsCRC32C == "" {
		return
	}
	if _, err := e.LoadChecksums(j.column.Spec.RecordBytes(), e.ReadFile); err != nil {
		v.corrupt(j, 0, max(0, e.Count-1), err)
	}
}

func (v *verifier) work(ctx context.Context, jobs <-chan *job) {
	var buf []byte
	for j := range jobs {
		if ctx.Err() == nil {
			buf = v.check(j, buf)
		}
		close(j.done)
	}
}

// collect enters the jobs into the identity in the order of records, whatever the order in which workers finish.
func (v *verifier) collect(order <-chan *job) {
	for j := range order {
		<-j.done
		v.mu.Lock()
		v.identity.add(j)
		v.mu.Unlock()
	}
}

// check compares the blocks of a job with their checksums. It returns its buffer for the next job.
func (v *verifier) check(j *job, buf []byte) []byte {
	size := int64(j.column.Spec.RecordBytes())
	from, to := j.rows()
	need := (to - from) * size
	if int64(cap(buf)) < need {
		buf = make([]byte, need)
	}
	payload := buf[:need]
	err := j.read(payload, from)
	if err != nil && j.packed != nil {
		v.localize(j, payload)
		return buf
	}
	var sums layout.Checksums
	if err == nil {
		sums, err = j.extent.ReadChecksums(j.first, j.n, j.extent.ReadFile)
	}
	if err != nil {
		v.corrupt(j, from, to-1, err)
		return buf
	}
	per := layout.BlockRecords(int(size))
	for b := range j.n {
		lo, hi := b*per, min((b+1)*per, to-from)
		if err := sums.Compare(b, layout.CRC32C(payload[lo*size:hi*size])); err != nil {
			v.corrupt(j, from+lo, from+hi-1, err)
		}
	}
	if v.identity != nil {
		j.digestRecords(payload)
	}
	v.done(j, int64(len(payload)))
	return buf
}

// corrupt reports a fault in rows of an extent, numbered from the extent's first row, as a fault of the records that
// they belong to.
func (v *verifier) corrupt(j *job, first, last int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity.fail()
	v.result.Corruptions++
	if v.opts.Corrupt == nil {
		return
	}
	d := &store.CorruptionError{
		Field: v.data.Schema.Fields[j.column.Field].Name, Array: j.column.Name, Shard: j.shard, Path: j.extent.Path, Err: err,
		Offset: j.offset(first, err),
	}
	d.First, d.Last = v.records(j, first, last)
	v.opts.Corrupt(d)
}

func (v *verifier) done(j *job, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result.Bytes += n
	v.result.Blocks += j.n
	if v.opts.Progress != nil {
		v.opts.Progress(n)
	}
}
