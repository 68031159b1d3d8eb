package mmapds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/store"
)

// Damage is a run of records whose bytes are not what was written, or a file that cannot
// be read.
type Damage struct {
	Field       string // empty: of the manifest
	Array       string // "tokens.offsets"; the field's name where its records have one length
	Shard       int    // number of the extent; 0 in an HDF5 file
	Path        string // of the file
	Offset      int64  // of the first byte that may be wrong
	First, Last int64  // records that one checksum covers, both included
	Err         error
	asked       int // the record that was read, where not all were
}

// Record returns the record that was asked for, of those that the checksum covers; of a damage
// that Verify found, the first.
func (d *Damage) Record() int { return max(d.asked, int(d.First)) }

// Error names everything that there is to name.
func (d *Damage) Error() string {
	if d.Field == "" {
		return fmt.Sprintf("%s: %v", filepath.Base(d.Path), d.Err)
	}
	records := fmt.Sprintf("records %d to %d", d.First, d.Last)
	if d.First == d.Last {
		records = fmt.Sprintf("record %d", d.First)
	}
	return fmt.Sprintf("%s: field %q: shard %d: %s: byte %#x on: %v", filepath.Base(d.Path), d.Field, d.Shard, records, d.Offset, d.Err)
}

// Unwrap returns the cause; for wrong bytes it is store.ErrCorrupt.
func (d *Damage) Unwrap() error { return d.Err }

// VerifyOptions configures Verify. The zero value is usable.
type VerifyOptions struct {
	Workers  int           // that read in parallel; 0 means GOMAXPROCS
	Progress func(n int64) // told of n more bytes checked, from one goroutine at a time; may be nil
	Damaged  func(*Damage) // told of each damage, in no order, from one goroutine at a time; may be nil
}

// Verified is what Verify did.
type Verified struct {
	Bytes   int64 // of columns compared with their checksums
	Blocks  int64
	Damages int64
	// Identity says that the dataset's id was computed from its records, and compared with the
	// one in the manifest: so data, checksums and manifest belong together. It is not done
	// for a part of a dataset, and not where there are damages.
	Identity bool
	// Unchecked lists fields without checksums, as in HDF5 files of other origin.
	Unchecked []string
}

// Verify reads every record of a dataset from disk, compares it with its CRC32C, and all of
// them with the dataset's id. It holds about 3 MiB a worker. The error says that it could
// not go on; damages are no error, they are counted and told.
func Verify(ctx context.Context, d *store.Dataset, opts VerifyOptions) (Verified, error) {
	v := &verifier{data: d, opts: opts, identity: newIdentity(d)}
	if v.opts.Workers <= 0 {
		v.opts.Workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer v.closePacked()
	jobs := make(chan *verifyJob)
	order := make(chan *verifyJob, 2*v.opts.Workers)
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
	opts     VerifyOptions
	identity *identity // nil: it is not computed
	mu       sync.Mutex
	result   Verified
	files    []*os.File  // of packed columns
	pool     *chunk.Pool // that inflates them
}

// verifyJob is a run of whole blocks of one extent, and the ends of the records in it.
type verifyJob struct {
	column *store.Column
	shard  int
	extent store.Extent
	first  int64         // block
	n      int64         // blocks
	record int64         // number of the first record that ends or begins in them
	ends   []int64       // of values: rows at which records end, from the extent's first row on
	crcs   []byte        // for the identity: uint32 of each record
	digest []piece       // the same for values, whose records may begin or end in other jobs
	packed *chunk.Reader // of the rows, where the column is packed
	done   chan struct{}
}

// rows returns the rows of the extent that the job has.
func (j *verifyJob) rows() (from, to int64) {
	per := store.BlockRecords(j.column.Spec.RecordBytes())
	return j.first * per, min((j.first+j.n)*per, j.extent.Count)
}

// A job has about so many bytes, and at most so many records.
const (
	verifyStep    = 1 << 20
	verifyRecords = 1 << 16
)

func (v *verifier) feed(ctx context.Context, jobs, order chan<- *verifyJob) error {
	for i := range v.data.Columns {
		c := &v.data.Columns[i]
		var reader *chunk.Reader
		for k, e := range c.Extents {
			if e.SumsPath == "" && e.Count > 0 {
				v.unchecked(c)
				break
			}
			if c.Packed && reader == nil {
				var err error
				if reader, err = v.openPacked(c); err != nil {
					v.damaged(&verifyJob{column: c, extent: e}, 0, max(0, c.Rows-1), err)
					break
				}
			}
			v.checkSums(&verifyJob{column: c, shard: k, extent: e, packed: reader})
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

func (v *verifier) unchecked(c *store.Column) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity.fail()
	name := v.data.Schema.Fields[c.Field].Name
	if !slices.Contains(v.result.Unchecked, name) {
		v.result.Unchecked = append(v.result.Unchecked, name)
	}
}

// split cuts an extent into jobs.
func (v *verifier) split(c *store.Column, k int, e store.Extent, packed *chunk.Reader) iter.Seq[*verifyJob] {
	if c.Part == store.Values {
		return v.splitValues(c, k, e, packed)
	}
	size := c.Spec.RecordBytes()
	per := store.BlockRecords(size)
	step := max(1, min(verifyStep/int64(size), verifyRecords)/per, chunkBlocks(packed, per))
	blocks := store.Blocks(e.Count, size)
	return func(yield func(*verifyJob) bool) {
		for first := int64(0); first < blocks; first += step {
			j := &verifyJob{column: c, shard: k, extent: e, first: first, n: min(step, blocks-first), record: e.First + first*per}
			if c.Part == store.Offsets {
				j.record -= int64(k) // an extent has one offset more than records
			}
			if !yield(j) {
				return
			}
		}
	}
}

// checkSums checks a file of checksums as a whole, so that damage of it is not taken for
// damage of the records.
func (v *verifier) checkSums(j *verifyJob) {
	e := j.extent
	if e.SumsCRC32C == "" {
		return
	}
	data, err := os.ReadFile(e.SumsPath)
	if err == nil {
		if got := store.HexCRC(store.CRC32C(data)); got != e.SumsCRC32C {
			err = fmt.Errorf("its checksum file %s is damaged (CRC32C %s, was %s), the records themselves may be whole: %w",
				filepath.Base(e.SumsPath), got, e.SumsCRC32C, store.ErrCorrupt)
		}
	}
	if err != nil {
		v.damaged(j, 0, max(0, e.Count-1), err)
	}
}

func (v *verifier) work(ctx context.Context, jobs <-chan *verifyJob) {
	var buf []byte
	for j := range jobs {
		if ctx.Err() == nil {
			buf = v.check(j, buf)
		}
		close(j.done)
	}
}

// collect takes the jobs in order.
func (v *verifier) collect(order <-chan *verifyJob) {
	for j := range order {
		<-j.done
		v.mu.Lock()
		v.identity.add(j)
		v.mu.Unlock()
	}
}

// check compares the blocks of a job; it returns its buffer for the next one.
func (v *verifier) check(j *verifyJob, buf []byte) []byte {
	size := int64(j.column.Spec.RecordBytes())
	from, to := j.rows()
	need := (to-from)*size + 4*j.n
	if int64(cap(buf)) < need {
		buf = make([]byte, need)
	}
	payload, sums := buf[:(to-from)*size], buf[(to-from)*size:need]
	err := j.read(payload, from)
	if err != nil && j.packed != nil {
		v.localize(j, payload)
		return buf
	}
	if err == nil && j.n > 0 {
		err = readAt(j.extent.SumsPath, sums, j.extent.SumsOffset+4*j.first)
	}
	if err != nil {
		v.damaged(j, from, to-1, err)
		return buf
	}
	per := store.BlockRecords(int(size))
	for b := range j.n {
		lo, hi := b*per, min((b+1)*per, to-from)
		if got, want := store.CRC32C(payload[lo*size:hi*size]), binary.LittleEndian.Uint32(sums[4*b:]); got != want {
			v.damaged(j, from+lo, from+hi-1, fmt.Errorf("CRC32C is %08x, was %08x when it was written: %w", got, want, store.ErrCorrupt))
		}
	}
	if v.identity != nil {
		j.digestRecords(payload)
	}
	v.done(j, int64(len(payload)))
	return buf
}

// damaged reports rows of an extent, numbered from its first, as the records they are of.
func (v *verifier) damaged(j *verifyJob, first, last int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.identity.fail()
	v.result.Damages++
	if v.opts.Damaged == nil {
		return
	}
	d := &Damage{
		Field: v.data.Schema.Fields[j.column.Field].Name, Array: j.column.Name, Shard: j.shard, Path: j.extent.Path, Err: err,
		Offset: j.offset(first, err),
	}
	d.First, d.Last = v.records(j, first, last)
	v.opts.Damaged(d)
}

func (v *verifier) done(j *verifyJob, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result.Bytes += n
	v.result.Blocks += j.n
	if v.opts.Progress != nil {
		v.opts.Progress(n)
	}
}

// readAt reads all of b from a file.
func readAt(path string, b []byte, offset int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.ReadAt(b, offset); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the file ends before the records do: %w", store.ErrCorrupt)
		}
		return err
	}
	return nil
}
