package mmapds

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// ReadMode says how Gather comes to records of one length that are stored as they are. All else
// is mapped.
type ReadMode int

// ReadAuto copies from the mapping what is in memory, and reads records of 64 KiB or more that are
// not, by pread into the caller's memory, up to 32 at a time in all calls of Gather: they leave
// no trace in the page tables. Of a dataset that is more than twice as large as the memory that the process may have,
// it reads them as ReadDirect does. ReadMapped has the pages brought in and copies from them, always.
// ReadPread reads always. ReadDirect does too, by O_DIRECT past the page cache, into the caller's memory
// where that and the record are aligned to 4096 bytes and else through buffers that are: for
// datasets much larger than memory, which would only drive other files out of the cache. Where the
// file system has no such reads, ReadDirect is ReadPread, and Reads says so.
const (
	ReadAuto ReadMode = iota
	ReadMapped
	ReadPread
	ReadDirect
)

// always reports whether records are read whatever is in memory.
func (r ReadMode) always() bool { return r >= ReadPread }

func (r ReadMode) validate() error {
	if r < ReadAuto || r > ReadDirect {
		return fmt.Errorf("WithRead: there is no ReadMode %d", int(r))
	}
	return nil
}

// readsDirect reports whether preads go past the page cache.
func (c *column) readsDirect() bool {
	_, refusal := c.direct.asked()
	return refusal == nil && (c.reading == ReadDirect || c.reading == ReadAuto && c.exceeds)
}

// coldBytes is how large a record must be for a pread of its own.
const coldBytes = 64 << 10

// counts says how many records Gather has got in which way.
type counts struct {
	mapped        atomic.Bool // any; a number would make every small Gather wait for memory
	read, evicted atomic.Int64
	looked        atomic.Int64 // when pages were looked at last, in ns since began
	checked       atomic.Int64 // bytes that were compared with checksums
	checking      atomic.Int64 // how long that took, in ns
	inVain        atomic.Int64 // looks at pages that were not in memory, since some were, and those that were spared
}

var began = time.Now()

// cold reports whether a row is better read by a pread, and if not so, whether it is known that
// nothing of it is to be read. It costs a system call unless the row's pages were brought in before.
func (c *column) cold(s *segment, at int) (cold, there bool) {
	if c.reading != ReadAuto {
		return c.reading.always(), false
	}
	if c.size < coldBytes || s.warm.has(at, at+c.size) {
		return false, false
	}
	in, pages, err := resident(s.data[at : at+c.size])
	return err == nil && 2*in < pages, err == nil && in == pages && c.reported
}

// How often warm pages are looked at, and how many. As the clock has to be asked whether it is
// time, which takes as long as a small Gather, those of fewer than lookBytes do so one time in
// lookRarely.
const (
	lookEvery  = 250 * time.Millisecond
	lookAt     = 16
	lookBytes  = 64 << 10
	lookRarely = 16
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
		if in, _, err := resident(s.data[at : at+1]); err == nil && in == 0 {
			return true
		}
	}
	return false
}

// resident estimates which part of a column's bytes is in memory, by 256 pages in a regular
// grid; -1 if the system does not report.
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
			n, pages, err := resident(data[at : at+1])
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

// Reads says how records of a field are read and why so, for people, with what it cost to verify
// them, and estimates which part of its bytes is in memory: from 0 to 1, or -1 where the system does not report. On Linux that is so
// for files that the process owns or may write; other files look as if all were in memory. It
// costs about 256 system calls and no reading. Of a field that does not exist it returns
// nothing.
func (d *Dataset) DescribeReads(field string) (how, why string, resident float64) {
	f, err := d.field(field)
	if err != nil {
		return "", "", -1
	}
	c := f.rows
	if c.packed != nil {
		why = c.packed.why
		if checked := c.checkedBy(); checked != "" {
			why += "; " + checked
		}
		return c.packed.how, why, -1
	}
	if d.Retain() != nil {
		return "", "", -1
	}
	defer d.Release()
	resident = c.resident()
	return c.how(), strings.Join(d.reasons(f, resident), "; "), resident
}

// how says what Gather did so far.
func (c *column) how() string {
	mapped, read := c.counts.mapped.Load(), c.counts.read.Load()
	way := "pread"
	if c.readsDirect() {
		way = "pread by O_DIRECT"
	}
	switch {
	case read == 0:
		return "mapped"
	case !mapped:
		return way
	}
	return "mapped and " + way
}

func (d *Dataset) reasons(f *field, resident float64) (why []string) {
	c := f.rows
	if resident >= 0 {
		why = append(why, fmt.Sprintf("%.0f %% of the pages are in memory", 100*resident))
	}
	if n := c.counts.read.Load(); n > 0 && c.reading == ReadAuto {
		why = append(why, fmt.Sprintf("%d records of %d KiB that were not were read by pread", n, c.size>>10))
	}
	if c.exceeds && c.readsDirect() && c.reading == ReadAuto {
		why = append(why, "the dataset is more than twice as large as memory")
	}
	if c.reading != ReadAuto && f.offsets == nil {
		why = append(why, "asked for by WithRead")
	}
	if n, refusal := c.direct.asked(); refusal != nil {
		why = append(why, refusal.Error())
	} else if n > 0 {
		why = append(why, fmt.Sprintf("through %d aligned buffers", n))
	}
	if n := c.counts.evicted.Load(); n > 0 {
		why = append(why, fmt.Sprintf("pages were taken out of memory %d times", n))
	}
	if checked := c.checkedBy(); checked != "" {
		why = append(why, checked)
	}
	return why
}

// checkedBy says what is compared with checksums, and what that has cost; nothing where nobody asked
// for it.
func (c *column) checkedBy() string {
	bytes, took := c.counts.checked.Load(), time.Duration(c.counts.checking.Load())
	switch {
	case c.checks.mode == VerifyOff:
		return ""
	case c.sums == nil:
		return "not checked: it has no checksums"
	case bytes == 0:
		return c.checks.String()
	}
	return fmt.Sprintf("%v, %.1f MB so far, which took %v", c.checks, float64(bytes)/1e6, took.Round(time.Microsecond))
}
