package mmapds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// verified compares the rows of another answer with their checksums before it hands them out. left
// and the block sets are atomic: two goroutines may check the same block at the same time, which
// costs time and changes nothing.
type verified struct {
	c      *column
	rows   answer
	memory *memory // where the rows are mapped; nil where they are decoded
	checks verification
	sums   []sums       // by number of the extent
	onRows arrival      // the method arrived, made once so that a Gather allocates nothing
	left   atomic.Int64 // blocks that were not compared and found right yet

	bytes atomic.Int64 // that were compared
	spent atomic.Int64 // how long that took, in ns
}

// sums are the checksums of an extent, loaded at first use, and the set of blocks that were found
// right.
type sums struct {
	load  sync.Once
	err   error
	want  layout.Checksums
	right layout.BlockSet
}

// newVerified returns rows with checks, or nil if the column has no checksums or verification is
// off.
func newVerified(c *column, rows answer, m *memory, checks verification) *verified {
	v := &verified{c: c, rows: rows, memory: m, checks: checks, sums: make([]sums, len(c.meta.Extents))}
	v.onRows = v.arrived
	for _, e := range c.meta.Extents {
		if e.SumsPath != "" {
			v.left.Add(layout.Blocks(e.Count, c.size))
		}
	}
	if checks.mode == VerifyOff || v.left.Load() == 0 {
		return nil
	}
	return v
}

// done reports whether no block needs to be compared any more.
func (v *verified) done() bool { return v.checks.mode == VerifyFirstTouch && v.left.Load() == 0 }

// arrival returns the callback that checks copied rows, or nil if all blocks were found right.
func (v *verified) arrival() arrival {
	if v.done() {
		return nil
	}
	return v.onRows
}

// slice checks rows of a view only once, even with VerifyAlways: Warm has just checked the records
// of the same batch.
func (v *verified) slice(a, b int) ([]byte, error) {
	data, err := v.rows.slice(a, b)
	if err != nil || a == b {
		return data, err
	}
	if v.memory == nil || !v.memory.contiguous(a, b) {
		return data, v.check(a, b, data, v.checks)
	}
	checks := v.checks
	if checks.mode == VerifyAlways {
		checks.mode = VerifyFirstTouch
	}
	return data, v.check(a, b, nil, checks)
}

// read checks rows [a, b) after reading them.
func (v *verified) read(a, b int, buf []byte) ([]byte, error) {
	data, err := v.rows.read(a, b, buf)
	if err != nil {
		return data, err
	}
	return data, v.check(a, b, data, v.checks)
}

// gather checks rows as they arrive. Its own callback is used: nothing else wraps a verified.
func (v *verified) gather(ctx context.Context, rows []int, dst []byte, _ arrival) error {
	return v.rows.gather(ctx, rows, dst, v.arrival())
}

func (v *verified) copy(ctx context.Context, runs []rowSpan, dst []byte, _ arrival) error {
	return v.rows.copy(ctx, runs, dst, v.arrival())
}

func (v *verified) prefetch(a, b int) error { return v.rows.prefetch(a, b) }

// warm checks rows that are mapped. Rows that must be decoded are checked when they are: decoding
// them twice would cost more than the check is worth.
func (v *verified) warm(a, b int) error {
	if err := v.rows.warm(a, b); err != nil || v.memory == nil || v.done() {
		return err
	}
	return v.check(a, b, nil, v.checks)
}

// arrived checks the blocks of rows that lie in data.
func (v *verified) arrived(row int, data []byte) error {
	return v.check(row, row+len(data)/v.c.size, data, v.checks)
}

// check compares the blocks of rows [a, b) with their checksums. data holds these rows unless it is
// nil. A block that extends beyond the rows is read whole, because a checksum covers the block.
func (v *verified) check(a, b int, data []byte, checks verification) error {
	per := v.c.block
	for at := a; at < b; {
		k := v.c.extent(at)
		e := &v.c.meta.Extents[k]
		first, end := int(e.First), int(e.First+e.Count)
		if e.SumsPath == "" {
			at = end
			continue
		}
		sums, err := v.load(k)
		if err != nil {
			return err
		}
		n := (at - first) / per
		from, to := first+n*per, min(first+(n+1)*per, end)
		if sums.due(n, checks) {
			var have []byte
			if data != nil && a <= from && to <= b {
				have = data[(from-a)*v.c.size : (to-a)*v.c.size]
			}
			if err := v.checkBlock(block{k, n, from, to}, at, have); err != nil {
				return err
			}
		}
		at = to
	}
	return nil
}

// block is number n of extent k: rows [from, to).
type block struct{ k, n, from, to int }

// due reports whether a block must be checked now.
func (s *sums) due(block int, checks verification) bool {
	switch checks.mode {
	case VerifyAlways:
		return true
	case VerifyFirstTouch:
		return !s.right.Has(int64(block))
	}
	return rand.Float64() < checks.fraction
}

// load returns the checksums of extent k, which are read when they are first needed. Open would
// otherwise read the checksums of every shard.
func (v *verified) load(k int) (*sums, error) {
	s, e := &v.sums[k], &v.c.meta.Extents[k]
	s.load.Do(func() {
		s.right.Make(layout.Blocks(e.Count, v.c.size))
		if s.want, s.err = e.LoadChecksums(v.c.size, e.ReadFile); s.err != nil {
			first, last := v.c.recordOf(int(e.First)), v.c.recordOf(int(e.First+e.Count-1))
			s.err = fmt.Errorf("mmapds: %w", &store.CorruptionError{Field: v.c.field, Array: v.c.meta.Name, Shard: k,
				Path: e.Path, Offset: e.Offset, First: int64(first), Last: int64(last), Err: s.err, Asked: int64(first)})
		}
	})
	return s, s.err
}

// checkBlock compares a block with its checksum. row is the row that was asked for, for the error.
// If data is nil, checkBlock reads the block.
func (v *verified) checkBlock(b block, row int, data []byte) (err error) {
	defer catch(&err, debug.SetPanicOnFault(true), v)
	if data == nil {
		if data, err = v.rows.read(b.from, b.to, nil); err != nil {
			return err
		}
	}
	e, sums := &v.c.meta.Extents[b.k], &v.sums[b.k]
	began := time.Now()
	err = sums.want.Compare(int64(b.n), layout.CRC32C(data))
	v.bytes.Add(int64(len(data)))
	v.spent.Add(int64(time.Since(began)))
	if err == nil {
		if sums.right.Add(int64(b.n)) {
			v.left.Add(-1)
		}
		return nil
	}
	asked := v.c.recordOf(row)
	return fmt.Errorf("mmapds: record %d: %w", asked, &store.CorruptionError{
		Field: v.c.field, Array: v.c.meta.Name, Shard: b.k, Path: e.Path,
		Offset: v.c.offsetOf(e, b.from),
		First:  int64(v.c.recordOf(b.from)), Last: int64(v.c.recordOf(b.to - 1)),
		Err:   err,
		Asked: int64(asked),
	})
}

// fault implements faulter for the rows' mapped memory; decoded rows are not in any.
func (v *verified) fault(addr uintptr) error {
	if v.memory == nil {
		return nil
	}
	return v.memory.fault(addr)
}
