package verify

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/layout"
)

// splitValues cuts an extent of values into jobs, and gives each the ends of its records, which it reads from the
// offsets. Offsets that cannot be right are reported as a corruption. The values are then checked by blocks alone, as
// no record is known to begin or end anywhere.
func (v *verifier) splitValues(c *layout.Column, k int, e layout.Extent, packed *chunk.Reader) iter.Seq[*job] {
	size := c.Spec.RecordBytes()
	offsets := layout.Of(v.data).Column(c.Field, layout.Offsets)
	index := layout.NewRaggedIndex(offsets, c)
	x, at := offsets.Extents[k], &index.Extents[k]
	records, blocks := at.Count, layout.Blocks(e.Count, size)
	per := layout.BlockRecords(size)
	step := max(1, min(jobBytes/int64(size), jobRecords*(e.Count/records+1))/per, chunkBlocks(packed, per))
	return func(yield func(*job) bool) {
		r, err := openEnds(x, at)
		defer r.close()
		record := at.First
		for first, last := int64(0), false; !last; first += step {
			j := &job{column: c, shard: k, extent: e, first: first, n: min(step, blocks-first), record: record}
			last = first+step >= blocks
			if err == nil {
				if err = r.take(j, last); err != nil {
					v.corrupt(&job{column: offsets, shard: k, extent: x}, 0, records, err)
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
	walk layout.Walk
	left int64 // offsets that no job has had
	next int64 // where the next record ends, in rows, if left is not 0
}

func openEnds(x layout.Extent, at *layout.RaggedExtent) (*ends, error) {
	f, err := x.Open()
	if err != nil {
		return &ends{}, err
	}
	e := &ends{file: f, left: at.Count, r: bufio.NewReaderSize(io.NewSectionReader(f, x.Offset, 8*x.Count), 1<<16)}
	first, err := e.read()
	if err == nil {
		e.walk, err = at.Walk(0, first, first)
	}
	if err == nil {
		err = e.advance()
	}
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
	return int64(binary.LittleEndian.Uint64(b[:])), nil
}

// advance reads where the next record ends.
func (e *ends) advance() error {
	offset, err := e.read()
	if err == nil {
		_, err = e.walk.Next(offset)
	}
	e.next = e.walk.Row()
	return err
}

// take gives a job the ends that are in its rows. The last job gets all remaining ones, since records without rows may
// end after the last row.
func (e *ends) take(j *job, last bool) error {
	_, to := j.rows()
	for e.left > 0 && (last || e.next <= to) {
		j.ends = append(j.ends, e.next)
		if e.left--; e.left > 0 {
			if err := e.advance(); err != nil {
				j.ends = nil
				return err
			}
		}
	}
	return nil
}

// records returns the first and last record that rows [first, last] of a job's extent belong to.
func (v *verifier) records(j *job, first, last int64) (int64, int64) {
	switch j.column.Part {
	case layout.Offsets:
		base := j.extent.First - int64(j.shard)
		return base + min(first, j.extent.Count-2), base + min(last, j.extent.Count-2)
	case layout.Values:
		if len(j.ends) > 0 {
			return j.recordOf(first), j.recordOf(last)
		}
		x := layout.Of(v.data).Column(j.column.Field, layout.Offsets).Extents[j.shard]
		return x.First - int64(j.shard), x.First - int64(j.shard) + x.Count - 2
	}
	return j.extent.First + first, j.extent.First + last
}

func (j *job) recordOf(row int64) int64 {
	return j.record + int64(sort.Search(len(j.ends), func(i int) bool { return j.ends[i] > row }))
}
