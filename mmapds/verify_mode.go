package mmapds

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// VerifyMode says which blocks of records are compared with their CRC32C before they are handed
// out. A block is one record of 4 KiB or more, else as many as fit into 64 KiB: access to one of
// them reads the whole block. Dataset.Reads returns what that has cost.
type VerifyMode int

// VerifyOff compares nothing. VerifyFirstTouch compares a block when it is first asked for, and holds
// one bit a block and its checksum. VerifyAlways does so whenever a block is asked for.
const (
	VerifyOff VerifyMode = iota
	VerifyFirstTouch
	VerifyAlways
	verifySample // see WithVerifySample
)

// verification is a mode, and the fraction of verifySample.
type verification struct {
	mode     VerifyMode
	fraction float64
}

// String says it in words.
func (v verification) String() string {
	switch v.mode {
	case VerifyOff:
		return "never checked"
	case VerifyFirstTouch:
		return "checked at first touch"
	case VerifyAlways:
		return "checked each time"
	}
	return fmt.Sprintf("%.3g %% checked", 100*v.fraction)
}

func (v verification) validate() error {
	switch {
	case v.mode == verifySample && !(v.fraction >= 0 && v.fraction <= 1):
		return fmt.Errorf("WithVerifySample: a fraction of %v; it must be from 0 to 1", v.fraction)
	case v.mode < VerifyOff || v.mode > verifySample:
		return fmt.Errorf("WithVerify: there is no VerifyMode %d", int(v.mode))
	}
	return nil
}

// sums are the checksums of an extent, and which blocks were found right.
type sums struct {
	load  sync.Once
	there atomic.Bool // loaded, without error
	err   error
	want  layout.Checksums
	right layout.BlockSet
}

// checkBy has the column checked from now on, where it has checksums.
func (c *column) checkBy(checks verification) {
	c.checks = checks
	for _, e := range c.meta.Extents {
		if checks.mode != VerifyOff && e.SumsPath != "" {
			c.sums = make([]sums, len(c.meta.Extents))
			return
		}
	}
}

// ready brings bytes [from, to) of a segment in, and checks them if that was asked for.
func (d *arrays) ready(c *column, s *segment, from, to int) error {
	if err := d.warm(c, s, from, to); err != nil || c.sums == nil {
		return err
	}
	return d.check(c, s, s.first+from/c.size, s.first+(to+c.size-1)/c.size, c.checks)
}

// checkView is check for a view. Warm has just checked the records of a batch, so
// VerifyAlways means once here.
func (d *arrays) checkView(c *column, s *segment, a, b int) error {
	if c.checks.mode == VerifyAlways {
		return d.check(c, s, a, b, verification{mode: VerifyFirstTouch})
	}
	return d.check(c, s, a, b, c.checks)
}

// check compares the blocks of rows [a, b) of a segment.
func (d *arrays) check(c *column, s *segment, a, b int, checks verification) error {
	per := c.block
	for a < b {
		k := c.extent(a)
		e := &c.meta.Extents[k]
		first, end := int(e.First), min(b, int(e.First+e.Count))
		if e.SumsPath != "" {
			sums, err := d.sums(c, k)
			if err != nil {
				return err
			}
			for n := (a - first) / per; n*per < end-first; n++ {
				if !sums.due(n, checks) {
					continue
				}
				if err := d.checkBlock(c, s, k, n, max(a, first+n*per)); err != nil {
					return err
				}
			}
		}
		a = end
	}
	return nil
}

// settled reports whether there is nothing to check when a row is asked for.
func (c *column) settled(row int) bool {
	if c.sums == nil || c.checks.mode != VerifyFirstTouch {
		return c.sums == nil
	}
	k := c.extent(row)
	e, s := &c.meta.Extents[k], &c.sums[k]
	return s.there.Load() && !s.due((row-int(e.First))/c.block, c.checks)
}

// extent returns the number of the extent that holds a row, which must exist.
func (c *column) extent(row int) int {
	low, high := 0, len(c.meta.Extents)
	for low < high-1 {
		if mid := (low + high) / 2; int(c.meta.Extents[mid].First) <= row {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// due reports whether to look at a block now.
func (s *sums) due(block int, checks verification) bool {
	switch checks.mode {
	case VerifyAlways:
		return true
	case VerifyFirstTouch:
		return !s.right.Has(int64(block))
	}
	return rand.Float64() < checks.fraction
}

// sums returns the checksums of extent k, which it reads when they are first needed.
func (d *arrays) sums(c *column, k int) (*sums, error) {
	s, e := &c.sums[k], &c.meta.Extents[k]
	s.load.Do(func() {
		s.right.Make(layout.Blocks(e.Count, c.size))
		if s.want, s.err = e.LoadChecksums(c.size, layout.ReadFile); s.err != nil {
			first, last := d.recordOf(c, int(e.First)), d.recordOf(c, int(e.First+e.Count-1))
			s.err = fmt.Errorf("mmapds: %w", &store.CorruptionError{Field: d.specs[c.meta.Field].Name, Array: c.meta.Name, Shard: k,
				Path: e.Path, Offset: e.Offset, First: int64(first), Last: int64(last), Err: s.err, Asked: int64(first)})
		}
		s.there.Store(s.err == nil)
	})
	return s, s.err
}

// checkBlock compares block n of extent k, which was asked for because of a row.
func (d *arrays) checkBlock(c *column, s *segment, k, n, row int) (err error) {
	defer d.catch(&err, debug.SetPanicOnFault(true))
	e, per := &c.meta.Extents[k], c.block
	first, end := int(e.First)+n*per, min(int(e.First)+(n+1)*per, int(e.First+e.Count))
	from, to := (first-s.first)*c.size, (end-s.first)*c.size
	if err := d.warm(c, s, from, to); err != nil {
		return err
	}
	return d.compare(c, k, n, row, s.data[from:to])
}

// compare compares what was read of block n of extent k with its checksum.
func (d *arrays) compare(c *column, k, n, row int, data []byte) error {
	e, sums := &c.meta.Extents[k], &c.sums[k]
	began := time.Now()
	err := sums.want.Compare(int64(n), layout.CRC32C(data))
	c.counts.checked.Add(int64(len(data)))
	c.counts.checking.Add(int64(time.Since(began)))
	if err == nil {
		sums.right.Add(int64(n))
		return nil
	}
	first := int(e.First) + n*c.block
	asked := d.recordOf(c, row)
	return fmt.Errorf("mmapds: record %d: %w", asked, &store.CorruptionError{
		Field: d.specs[c.meta.Field].Name, Array: c.meta.Name, Shard: k, Path: e.Path,
		Offset: c.offset(e, first),
		First:  int64(d.recordOf(c, first)), Last: int64(d.recordOf(c, first+len(data)/c.size-1)),
		Err:   err,
		Asked: int64(asked),
	})
}

// offset returns where a row of an extent is in its file, or the chunk that has it.
func (c *column) offset(e *layout.Extent, row int) int64 {
	if c.packed != nil {
		return c.packed.offset(row)
	}
	return e.Offset + int64(row-int(e.First))*int64(c.size)
}

// recordOf returns the record that a row is of.
func (d *arrays) recordOf(c *column, row int) int {
	switch c.meta.Part {
	case layout.Values:
		return d.fields[c.meta.Field].recordOf(row)
	case layout.Offsets:
		return min(row-c.extent(row), d.len()-1) // an extent has one offset more than records
	}
	return row
}
