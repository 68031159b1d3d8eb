package mmapds

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"

	"github.com/penstock/penstock/internal/kernel"
)

// mapped answers for rows that are stored as they are in files: it brings pages in and copies from
// the mapping, or reads by pread into the caller's memory. A pread of a large cold record leaves no
// trace in the page tables, where a mapped page costs a fault and an entry.
type mapped struct {
	c      *column
	memory *memory
	preads *preader
	copied atomic.Bool // rows of Gather, from the mapping; a number would make every small Gather wait for memory
}

// slice returns memory of the mapping where the rows are one piece, and starts to read it if it is
// small (viewBytes). Rows that lie in two segments are copied.
func (m *mapped) slice(a, b int) ([]byte, error) {
	if a == b {
		return nil, nil
	}
	if data := m.memory.run(a, b); data != nil {
		if len(data) <= viewBytes {
			return data, m.memory.start(a, b)
		}
		return data, nil
	}
	dst := make([]byte, (b-a)*m.c.size)
	return dst, m.memory.copyRun(a, b, dst)
}

// read returns memory of the mapping where the rows are one piece, else a copy. The pages are in
// memory on return.
func (m *mapped) read(a, b int, buf []byte) ([]byte, error) {
	s, at := m.memory.find(a)
	if end := at + (b-a)*m.c.size; end <= len(s.data) {
		return s.data[at:end], m.memory.bring(s, at, end)
	}
	buf = resize(buf, (b-a)*m.c.size)
	return buf, m.memory.copyRun(a, b, buf)
}

// viewBytes is the size up to which a view is read ahead as a whole, instead of page by page as it
// is touched. Of a larger view the caller may use only a part.
const viewBytes = 2 << 20

// prefetch starts to read rows, except rows that are read past the page cache: the pages would be
// read twice.
func (m *mapped) prefetch(a, b int) error {
	if m.isDirect() {
		return nil
	}
	return m.memory.start(a, b)
}

// isDirect reports whether rows are read past the page cache.
func (m *mapped) isDirect() bool { return m.preads.isDirect() && m.c.size >= m.preads.least() }

// warm brings rows [a, b) into memory, step by step. While it waits for a step, it keeps the
// disk busy with the next few steps, but not with more: pages that are read too early may be
// evicted before their turn.
func (m *mapped) warm(a, b int) error {
	m.memory.look()
	step := m.c.perStep()
	if err := m.memory.start(a, min(b, a+warmSteps*step)); err != nil {
		return err
	}
	for ; a < b; a = min(b, a+step) {
		if next := a + warmSteps*step; next < b {
			if err := m.memory.start(next, min(b, next+step)); err != nil {
				return err
			}
		}
		if err := m.memory.span(a, min(b, a+step), m.memory.bring); err != nil {
			return err
		}
	}
	return nil
}

// warmSteps is how many steps of warm are under way at a time.
const warmSteps = 4

// gather starts all reads before it waits for the first: a disk is fast only with many requests at
// once. It allocates nothing for rows that are in memory.
func (m *mapped) gather(ctx context.Context, rows []int, dst []byte, arrived arrival) error {
	m.memory.loadFirst(rows)
	if len(dst) >= lookBytes || rand.Uint32()%lookRarely == 0 {
		m.memory.look()
	}
	hot, cold, err := m.ask(rows)
	switch {
	case err != nil:
		return err
	case cold >= 0:
		return m.gatherCold(ctx, rows, cold, dst, arrived)
	}
	return m.gatherMapped(ctx, rows, dst, warmth(hot), arrived)
}

// ask starts to read the rows whose pages were not brought in yet. hot says that there are no such
// rows, so that the copy may begin at once. cold is the first place in the list whose row is better
// read by a pread, or -1.
func (m *mapped) ask(rows []int) (hot bool, cold int, err error) {
	n, size, memory := uint(m.c.len()), m.c.size, m.memory
	preads, least := m.preads.mode.always(), m.preads.least()
	hot = !preads
	full := hot && memory.full()
	var w wants
	defer w.send()
	for k, i := range rows {
		if uint(i) >= n {
			return false, -1, m.c.check(i, i+1)
		}
		if full {
			continue
		}
		s, at := memory.find(i)
		if !preads && s.warm.has(at, at+size) {
			continue
		}
		cold, there := m.cold(s, at, least)
		if cold {
			return false, k, nil
		}
		hot = !there && memory.want(&w, s, at, at+size) && hot
	}
	return hot, -1, nil
}

// cold reports whether a row is better read by a pread, because at least one of its pages is not in
// memory. there says that all of the row is known to be in memory. cold costs a system call unless
// the row's pages were brought in before.
func (m *mapped) cold(s *segment, at, least int) (cold, there bool) {
	size := m.c.size
	if m.preads.mode != modeAuto {
		return m.preads.mode.always(), false
	}
	if size < least || s.warm.has(at, at+size) {
		return false, false
	}
	if !m.memory.reported {
		return least == directBlock, false
	}
	in, pages, err := resident(s.data[at : at+size])
	return err == nil && in < pages, err == nil && in == pages
}

// gatherCold is gather for a list in which the row at rows[first] is not in memory: it reads such
// rows by pread, and copies the others from the mapping.
func (m *mapped) gatherCold(ctx context.Context, rows []int, first int, dst []byte, arrived arrival) error {
	var cold []int
	least := m.preads.least()
	for k, i := range rows {
		if err := m.c.check(i, i+1); err != nil {
			return err
		}
		s, at := m.memory.find(i)
		if is, _ := m.cold(s, at, least); is || k == first {
			cold = append(cold, k)
		}
	}
	if err := m.preads.gather(ctx, rows, cold, dst, arrived); err != nil {
		return err
	}
	size := m.c.size
	for from := 0; from < len(rows); {
		to := len(rows)
		if len(cold) > 0 {
			to, cold = cold[0], cold[1:]
		}
		if err := m.gatherMapped(ctx, rows[from:to], dst[from*size:to*size], unknown, arrived); err != nil {
			return err
		}
		from = to + 1
	}
	return nil
}

// warmth says whether rows that are to be copied are known to be in memory.
type warmth bool

const (
	unknown  warmth = false
	inMemory warmth = true // the copy needs no look at the page sets
)

// gatherMapped copies rows from the mapping.
func (m *mapped) gatherMapped(ctx context.Context, rows []int, dst []byte, are warmth, arrived arrival) error {
	if len(rows) > 0 && !m.copied.Load() {
		m.copied.Store(true)
	}
	for len(rows) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(rows), m.c.perStep())
		if err := m.copyRows(rows[:n], dst, are, arrived); err != nil {
			return err
		}
		rows, dst = rows[n:], dst[n*m.c.size:]
	}
	return nil
}

// copyRows copies rows to dst, after bringing their pages in unless all are known to be in memory.
// If nothing has to be checked either, memory.copyRows does it faster.
func (m *mapped) copyRows(rows []int, dst []byte, are warmth, arrived arrival) (err error) {
	defer catch(&err, debug.SetPanicOnFault(true), m.memory)
	if are == inMemory && arrived == nil {
		m.memory.copyRows(rows, dst)
		return nil
	}
	memory, size := m.memory, m.c.size
	distance, part := memory.prefetchDistance(), memory.prefix()
	for k, i := range rows {
		if are == inMemory && k+distance < len(rows) {
			memory.load(rows[k+distance], part)
		}
		s, at := memory.find(i)
		if err := memory.bring(s, at, at+size); err != nil {
			return err
		}
		row := dst[k*size : (k+1)*size]
		kernel.Copy(row, s.data[at:at+size])
		if arrived == nil {
			continue
		}
		if err := arrived(i, row); err != nil {
			return err
		}
	}
	return nil
}

// runsAhead is how many runs of rows before its turn a run is prefetched into the CPU's cache.
const runsAhead = 8

// copy starts all reads before it waits for the first, as gather does.
func (m *mapped) copy(ctx context.Context, runs []rowSpan, dst []byte, arrived arrival) error {
	m.askRuns(runs)
	for k := range min(runsAhead, len(runs)) {
		m.load(runs[k])
	}
	for k, r := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if k+runsAhead < len(runs) {
			m.load(runs[k+runsAhead])
		}
		n := r.n * m.c.size
		if err := m.memory.copyRun(r.row, r.row+r.n, dst[:n]); err != nil {
			return err
		}
		if err := arrive(arrived, m.c.size, runs[k:k+1], dst); err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// load prefetches the first bytes of a run of rows into the CPU's cache.
func (m *mapped) load(r rowSpan) {
	if r.n > 0 {
		m.memory.load(r.row, min(r.n*m.c.size, prefetchRow))
	}
}

// askRuns starts to read runs of rows, with as few system calls as possible.
func (m *mapped) askRuns(runs []rowSpan) {
	var w wants
	defer w.send()
	for _, r := range runs {
		if r.n == 0 {
			continue
		}
		s, at := m.memory.find(r.row)
		if end := min(at+r.n*m.c.size, len(s.data)); !s.warm.has(at, end) {
			m.memory.want(&w, s, at, end)
		}
	}
}
