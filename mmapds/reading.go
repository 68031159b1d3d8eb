package mmapds

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/mmap"
)

// Reading says how Gather comes to records of one length that are stored as they are. All else
// is mapped.
type Reading int

// Auto copies from the mapping what is in memory, and reads records of 64 KiB or more that are
// not, by pread into the caller's memory, up to 32 at a time in one call of Gather: they leave
// no trace in the page tables. Mapped has the pages brought in and copies from them, always.
// Pread reads always.
const (
	Auto Reading = iota
	Mapped
	Pread
)

func (r Reading) validate() error {
	if r < Auto || r > Pread {
		return fmt.Errorf("Options.Read: there is no %d", int(r))
	}
	return nil
}

// coldBytes is how large a record must be for a pread of its own.
const coldBytes = 64 << 10

// counts says how many records Gather has got in which way.
type counts struct {
	mapped, read, evicted atomic.Int64
	looked                atomic.Int64 // when pages were looked at last, in ns since began
}

var began = time.Now()

// cold reports whether a row is better read by a pread. It costs a system call unless the
// row's pages were brought in before.
func (c *column) cold(reading Reading, s *segment, at int) bool {
	if reading != Auto {
		return reading == Pread
	}
	if c.size < coldBytes || s.warm.has(at, at+c.size) {
		return false
	}
	in, pages, err := mmap.Resident(s.data[at : at+c.size])
	return err == nil && 2*in < pages
}

// How often warm pages are looked at, and how many.
const (
	lookEvery = 250 * time.Millisecond
	lookAt    = 16
)

// look finds out by a sample whether the kernel took pages back that were brought in, and if so
// forgets that they were.
func (c *column) look() {
	now, last := int64(time.Since(began)), c.counts.looked.Load()
	if now-last < int64(lookEvery) || !c.counts.looked.CompareAndSwap(last, now) {
		return
	}
	for i := range c.segments {
		if s := &c.segments[i]; s.evicted() {
			s.warm.clear()
			c.counts.evicted.Add(1)
		}
	}
}

func (s *segment) evicted() bool {
	for range lookAt {
		at := rand.IntN(len(s.data))
		if !s.warm.has(at, at+1) {
			continue
		}
		if in, _, err := mmap.Resident(s.data[at : at+1]); err == nil && in == 0 {
			return true
		}
	}
	return false
}

// resident estimates which part of a column's bytes is in memory, by 256 pages in a regular
// grid; -1 if the system does not tell.
func (c *column) resident() float64 {
	in, all := 0, 0
	total := 0
	for i := range c.segments {
		total += len(c.segments[i].data)
	}
	step := max(1, total/256)
	for i := range c.segments {
		data := c.segments[i].data
		for at := min(step, len(data)) / 2; at < len(data); at += step {
			n, pages, err := mmap.Resident(data[at : at+1])
			if err != nil {
				return -1
			}
			in, all = in+n, all+pages
		}
	}
	if all == 0 {
		return -1
	}
	return float64(in) / float64(all)
}

// Reads says how records of a field are read and why so, for people, and estimates which part of
// its bytes is in memory: from 0 to 1, or -1 where the system does not tell. On Linux that is so
// for files that the process owns or may write; other files look as if all were in memory. It
// costs about 256 system calls and no reading. Of a field that does not exist it returns
// nothing.
func (d *Dataset) Reads(field string) (how, why string, resident float64) {
	f, err := d.field(field)
	if err != nil {
		return "", "", -1
	}
	c := f.rows
	if c.packed != nil {
		why = "it is chunked, compressed or big endian"
		switch {
		case c.checks != Off && c.sums == nil:
			why += "; not checked: it has no checksums"
		case c.checks != Off:
			why += "; " + c.checks.String()
		}
		return "inflated", why, -1
	}
	if d.Retain() != nil {
		return "", "", -1
	}
	defer d.Release()
	resident = c.resident()
	mapped, read := c.counts.mapped.Load(), c.counts.read.Load()
	switch {
	case read == 0:
		how = "mapped"
	case mapped == 0:
		how = "pread"
	default:
		how = "mapped and pread"
	}
	return how, strings.Join(d.reasons(f, resident), "; "), resident
}

func (d *Dataset) reasons(f *field, resident float64) (why []string) {
	c := f.rows
	if resident >= 0 {
		why = append(why, fmt.Sprintf("%.0f %% of the pages are in memory", 100*resident))
	}
	if n := c.counts.read.Load(); n > 0 && d.read == Auto {
		why = append(why, fmt.Sprintf("%d records of %d KiB that were not were read by pread", n, c.size>>10))
	}
	if d.read != Auto && f.offsets == nil {
		why = append(why, "asked for by Options.Read")
	}
	if n := c.counts.evicted.Load(); n > 0 {
		why = append(why, fmt.Sprintf("pages were taken out of memory %d times", n))
	}
	switch {
	case c.checks != Off && c.sums == nil:
		why = append(why, "not checked: it has no checksums")
	case c.checks != Off:
		why = append(why, c.checks.String())
	}
	return why
}
