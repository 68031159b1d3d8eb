package mmapds

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/store"
)

// splitValues cuts an extent of values into jobs with the ends of their records, which it
// reads from the offsets. Offsets that cannot be right are a damage, and then the blocks
// alone are checked.
func (v *verifier) splitValues(c *store.Column, k int, e store.Extent, packed *chunk.Reader) iter.Seq[*verifyJob] {
	size := c.Spec.RecordBytes()
	offsets := v.data.Column(c.Field, store.Offsets)
	x := offsets.Extents[k]
	records, blocks := x.Count-1, store.Blocks(e.Count, size)
	per := store.BlockRecords(size)
	step := max(1, min(verifyStep/int64(size), verifyRecords*(e.Count/records+1))/per, chunkBlocks(packed, per))
	return func(yield func(*verifyJob) bool) {
		r, err := openEnds(x)
		defer r.close()
		record := x.First - int64(k)
		for first, last := int64(0), false; !last; first += step {
			j := &verifyJob{column: c, shard: k, extent: e, first: first, n: min(step, blocks-first), record: record}
			last = first+step >= blocks
			if err == nil {
				if err = r.take(j, last); err != nil {
					v.damaged(&verifyJob{column: offsets, shard: k, extent: x}, 0, records, err)
				}
			}
			record += int64(len(j.ends))
			if !yield(j) {
				return
			}
		}
	}
}

// ends reads the offsets of an extent in order.
type ends struct {
	file *os.File
	r    *bufio.Reader
	left int64 // offsets that are not taken
	base int64
	next int64 // the one that comes next, if left is not 0
	path string
}

func openEnds(x store.Extent) (*ends, error) {
	f, err := os.Open(x.Path)
	if err != nil {
		return &ends{}, err
	}
	e := &ends{file: f, left: x.Count - 1, path: x.Path, r: bufio.NewReaderSize(io.NewSectionReader(f, x.Offset, 8*x.Count), 1<<16)}
	if e.base, err = e.read(); err != nil {
		return e, err
	}
	e.next, err = e.read()
	return e, err
}

func (e *ends) close() {
	if e.file != nil {
		e.file.Close()
	}
}

func (e *ends) read() (int64, error) {
	var b [8]byte
	if _, err := io.ReadFull(e.r, b[:]); err != nil {
		return 0, fmt.Errorf("offsets: %w", err)
	}
	n := int64(binary.LittleEndian.Uint64(b[:]))
	if n < 0 {
		return 0, fmt.Errorf("an offset is %d: %w", n, store.ErrCorrupt)
	}
	return n, nil
}

// take gives a job the ends that lie in its rows; the last job must get all that are left.
func (e *ends) take(j *verifyJob, last bool) error {
	at, to := j.rows()
	for e.left > 0 && (last || e.next-e.base <= to) {
		end := e.next - e.base
		if end < at || end > to {
			j.ends = nil
			return fmt.Errorf("offsets do not rise from 0 to the %d rows of the values: %w", j.extent.Count, store.ErrCorrupt)
		}
		j.ends, at = append(j.ends, end), end
		if e.left--; e.left > 0 {
			var err error
			if e.next, err = e.read(); err != nil {
				j.ends = nil
				return err
			}
		}
	}
	if last && at != to {
		j.ends = nil
		return fmt.Errorf("offsets end at %d of the %d rows of the values: %w", at, j.extent.Count, store.ErrCorrupt)
	}
	return nil
}

// records returns which records rows [first, last] of a job's extent belong to.
func (v *verifier) records(j *verifyJob, first, last int64) (int64, int64) {
	switch j.column.Part {
	case store.Offsets:
		base := j.extent.First - int64(j.shard)
		return base + min(first, j.extent.Count-2), base + min(last, j.extent.Count-2)
	case store.Values:
		if len(j.ends) > 0 {
			return j.recordOf(first), j.recordOf(last)
		}
		x := v.data.Column(j.column.Field, store.Offsets).Extents[j.shard]
		return x.First - int64(j.shard), x.First - int64(j.shard) + x.Count - 2
	}
	return j.extent.First + first, j.extent.First + last
}

func (j *verifyJob) recordOf(row int64) int64 {
	return j.record + int64(sort.Search(len(j.ends), func(i int) bool { return j.ends[i] > row }))
}
