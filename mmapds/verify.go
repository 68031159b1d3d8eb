package mmapds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/penstock/penstock/store"
)

// Damage is a run of records whose bytes are not what was written, or a file that cannot
// be read.
type Damage struct {
	Field       string
	Shard       int    // number of the extent; 0 in an HDF5 file
	Path        string // of the file
	Offset      int64  // of the first byte that may be wrong
	First, Last int64  // records that one checksum covers, both included
	Err         error
}

// Error names everything that there is to name.
func (d *Damage) Error() string {
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
	Bytes   int64 // of records compared with their checksums
	Blocks  int64
	Damages int64
	// Unchecked lists fields without checksums, as in HDF5 files of other origin.
	Unchecked []string
}

// Verify reads every record of a dataset from disk and compares it with its CRC32C. It
// holds about 1 MiB a worker. The error says that it could not go on; damages are no
// error, they are counted and told.
func Verify(ctx context.Context, d *store.Dataset, opts VerifyOptions) (Verified, error) {
	v := &verifier{data: d, opts: opts}
	if v.opts.Workers <= 0 {
		v.opts.Workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan verifyJob)
	var workers sync.WaitGroup
	for range v.opts.Workers {
		workers.Go(func() { v.work(ctx, jobs) })
	}
	err := v.feed(ctx, jobs)
	close(jobs)
	workers.Wait()
	return v.result, errors.Join(err, context.Cause(ctx))
}

type verifier struct {
	data   *store.Dataset
	opts   VerifyOptions
	mu     sync.Mutex
	result Verified
}

// verifyJob is a run of whole blocks of one extent.
type verifyJob struct {
	field, shard int
	extent       store.Extent
	first, n     int64 // blocks
}

// verifyStep is about how many bytes a job has.
const verifyStep = 1 << 20

func (v *verifier) feed(ctx context.Context, jobs chan<- verifyJob) error {
	for i, f := range v.data.Schema.Fields {
		blockBytes := store.BlockRecords(f.RecordBytes()) * int64(f.RecordBytes())
		step := max(1, verifyStep/blockBytes)
		for k, e := range v.data.Extents[i] {
			if e.SumsPath == "" {
				v.result.Unchecked = append(v.result.Unchecked, f.Name)
				break
			}
			v.checkSums(i, k, e)
			blocks := store.Blocks(e.Count, f.RecordBytes())
			for first := int64(0); first < blocks; first += step {
				select {
				case jobs <- verifyJob{i, k, e, first, min(step, blocks-first)}:
				case <-ctx.Done():
					return nil
				}
			}
		}
	}
	return nil
}

// checkSums checks a file of checksums as a whole, so that damage of it is not taken for
// damage of the records.
func (v *verifier) checkSums(field, shard int, e store.Extent) {
	if e.SumsCRC32C == "" {
		return
	}
	j := verifyJob{field: field, shard: shard, extent: e}
	data, err := os.ReadFile(e.SumsPath)
	if err == nil {
		if got := store.HexCRC(store.CRC32C(data)); got != e.SumsCRC32C {
			err = fmt.Errorf("its checksum file %s is damaged (CRC32C %s, was %s), the records themselves may be whole: %w",
				filepath.Base(e.SumsPath), got, e.SumsCRC32C, store.ErrCorrupt)
		}
	}
	if err != nil {
		v.damaged(j, 0, e.Count-1, err)
	}
}

func (v *verifier) work(ctx context.Context, jobs <-chan verifyJob) {
	var buf []byte
	for j := range jobs {
		if ctx.Err() == nil {
			buf = v.check(j, buf)
		}
	}
}

// check compares the blocks of a job; it returns its buffer for the next one.
func (v *verifier) check(j verifyJob, buf []byte) []byte {
	size := int64(v.data.Schema.Fields[j.field].RecordBytes())
	per := store.BlockRecords(int(size))
	from, to := j.first*per, min((j.first+j.n)*per, j.extent.Count)
	need := (to-from)*size + 4*j.n
	if int64(cap(buf)) < need {
		buf = make([]byte, need)
	}
	payload, sums := buf[:(to-from)*size], buf[(to-from)*size:need]
	err := readAt(j.extent.Path, payload, j.extent.Offset+from*size)
	if err == nil {
		err = readAt(j.extent.SumsPath, sums, j.extent.SumsOffset+4*j.first)
	}
	if err != nil {
		v.damaged(j, from, to-1, err)
		return buf
	}
	for b := range j.n {
		lo, hi := b*per, min((b+1)*per, to-from)
		if got, want := store.CRC32C(payload[lo*size:hi*size]), binary.LittleEndian.Uint32(sums[4*b:]); got != want {
			v.damaged(j, from+lo, from+hi-1, fmt.Errorf("CRC32C is %08x, was %08x when it was written: %w", got, want, store.ErrCorrupt))
		}
	}
	v.done(j, int64(len(payload)))
	return buf
}

// damaged reports records of an extent, numbered from its first.
func (v *verifier) damaged(j verifyJob, first, last int64, err error) {
	f := v.data.Schema.Fields[j.field]
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result.Damages++
	if v.opts.Damaged != nil {
		v.opts.Damaged(&Damage{
			Field: f.Name, Shard: j.shard, Path: j.extent.Path, Err: err,
			Offset: j.extent.Offset + first*int64(f.RecordBytes()),
			First:  j.extent.First + first, Last: j.extent.First + last,
		})
	}
}

func (v *verifier) done(j verifyJob, n int64) {
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
