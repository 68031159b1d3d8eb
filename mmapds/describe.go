package mmapds

import (
	"fmt"
	"strings"
	"time"
)

// DescribeReads says how records of a field are read and why so, for people, with the cost of verifying them, and
// estimates which part of the field's bytes is in memory: from 0 to 1, or -1 where the system does not report. On
// Linux the system reports it for files that the process owns or may write; other files look as if all were in
// memory. It costs about 256 system calls and no reading. Of a field that does not exist it returns nothing.
func (d *Dataset) DescribeReads(field string) (how, why string, resident float64) {
	f, err := d.field(field)
	if err != nil {
		return "", "", -1
	}
	if f.rows.mapped == nil {
		how, why = f.rows.how, f.rows.why
		if checked := d.checksOf(f.rows); checked != "" {
			why += "; " + checked
		}
		return how, why, -1
	}
	if d.Retain() != nil {
		return "", "", -1
	}
	defer d.Release()
	m := f.rows.mapped
	resident = m.memory.resident()
	var reasons []string
	if resident >= 0 {
		reasons = append(reasons, fmt.Sprintf("%.0f %% of the pages are in memory", 100*resident))
	}
	reasons = append(reasons, m.preads.reasons()...)
	if n := m.memory.evicted.Load(); n > 0 {
		reasons = append(reasons, fmt.Sprintf("pages were taken out of memory %d times", n))
	}
	if checked := d.checksOf(f.rows); checked != "" {
		reasons = append(reasons, checked)
	}
	return m.how(), strings.Join(reasons, "; "), resident
}

// how returns the ways in which Gather has read so far.
func (m *mapped) how() string {
	mapped, read := m.copied.Load(), m.preads.received.Load()
	way := "pread"
	if m.preads.isDirect() {
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

// reasons returns why records were, or were not, read by pread.
func (p *preader) reasons() (why []string) {
	if n := p.received.Load(); n > 0 && p.mode == modeAuto {
		why = append(why, fmt.Sprintf("%d records of %d KiB that were not were read by pread", n, p.c.size>>10))
	}
	if p.exceeds && p.isDirect() && p.mode == modeAuto {
		why = append(why, "the dataset is more than twice as large as memory")
	}
	if n, refusal := p.handles.direct.asked(); refusal != nil {
		why = append(why, refusal.Error())
	} else if n > 0 {
		why = append(why, fmt.Sprintf("through %d aligned buffers", n))
	}
	return why
}

// checksOf describes which rows are compared with checksums and how long the comparison took; "" if
// verification is off.
func (d *Dataset) checksOf(r *reader) string {
	switch {
	case d.checks.mode == VerifyOff:
		return ""
	case r.checks == nil:
		return "not checked: it has no checksums"
	case r.checks.bytes.Load() == 0:
		return d.checks.String()
	}
	bytes, spent := r.checks.bytes.Load(), time.Duration(r.checks.spent.Load())
	return fmt.Sprintf("%v, %.1f MB so far, which took %v", d.checks, float64(bytes)/1e6, spent.Round(time.Microsecond))
}
