package mmapds

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/tensor"
)

// Range is bytes [Offset, Offset+Bytes) of a file of a dataset.
type Range struct {
	Path          string // of one of the files of Dataset.Files
	Offset, Bytes int64
}

// Pager fetches bytes of a dataset whose files are not all there yet: the third way to read beside
// mapped memory and pread. The files have their full length, and those of their bytes that were not
// fetched read as anything. Package remote/mirror has one. Methods may be called by any goroutine.
type Pager interface {
	// Complete reports that all bytes are in the files, and stay there, so that nothing has to be
	// asked for any more. It costs next to nothing.
	Complete() bool

	// Stays reports that fetched bytes stay in the files, so that views of them can be handed out.
	Stays() bool

	// Ensure fetches ranges, and keeps them until Held.Release. Where it has to wait, it also asks for
	// the ranges that soon returns, which will be needed next; soon may be nil.
	Ensure(ctx context.Context, need []Range, soon func() []Range) (Held, error)

	// Prefetch begins to fetch ranges, and does not wait.
	Prefetch(need []Range)

	// ReadAt fills p with bytes of a file, which are held by the caller.
	ReadAt(path string, p []byte, off int64) error

	// Distrust reports whether err, of reading bytes that were fetched, shows that they were corrupt
	// on their way, so that they are fetched again when they are asked for.
	Distrust(err error) bool
}

// Held is ranges that were fetched, and stay until Release.
type Held interface {
	// InFiles reports that all of them are in the files, and none in memory only.
	InFiles() bool

	// Again fetches again what err, of reading them, shows to be corrupt, so that they can be read once
	// more. Where that does not help, or was done too often, it returns err, and says what it is about.
	Again(ctx context.Context, err error) error

	// Release ends the hold.
	Release()
}

// fetcher reads arrays whose bytes need not be in their files yet.
type fetcher struct {
	arrays
	pager Pager // nil: all is in the files
}

// fetches reports whether reads go through the pager.
func (d *fetcher) fetches() bool { return d.pager != nil && !d.pager.Complete() }

// distrusts reports whether a failed read is to be repeated through the pager.
func (d *fetcher) distrusts(err error) bool {
	return err != nil && d.pager != nil && d.pager.Distrust(err)
}

// pagedFile reads a file of a dataset through its pager.
type pagedFile struct {
	pager Pager
	path  string
}

// ReadAt reads as io.ReaderAt says.
func (f pagedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.pager.ReadAt(f.path, p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// appendRange adds a range, or makes the last one longer.
func appendRange(list []Range, r Range) []Range {
	if n := len(list); n > 0 && list[n-1].Path == r.Path && list[n-1].Offset+list[n-1].Bytes == r.Offset {
		list[n-1].Bytes += r.Bytes
		return list
	}
	return append(list, r)
}

// ranges appends where rows [a, b), which exist, are: their chunks where the column is packed.
func (c *column) ranges(list []Range, a, b int) []Range {
	for a < b {
		e := &c.meta.Extents[c.extent(a)]
		n := min(b, int(e.First+e.Count)) - a
		if c.packed == nil {
			list = appendRange(list, Range{e.Path, c.offset(e, a), int64(n * c.size)})
		} else {
			row := e.Row + int64(a) - e.First
			c.packed.fetched.Stored(row, row+int64(n), func(off, bytes int64) {
				if bytes > 0 {
					list = appendRange(list, Range{e.Path, off, bytes})
				}
			})
		}
		a += n
	}
	return list
}

// readHeld fills dst with rows [a, b), which are stored as they are, and held.
func (d *fetcher) readHeld(c *column, a, b int, dst []byte) error {
	for _, r := range c.ranges(nil, a, b) {
		if err := d.pager.ReadAt(r.Path, dst[:r.Bytes], r.Offset); err != nil {
			return d.lost(c, a, err)
		}
		dst = dst[r.Bytes:]
	}
	return nil
}

// runs appends what rows [a, b) of a packed column are in the HDF5 dataset, to be put in memory from row
// to on.
func (p *packed) runs(list []chunk.Run, a, b int, to int64) []chunk.Run {
	for a < b {
		row, n := p.next(a, b)
		r := chunk.Run{First: row, N: int64(n), To: to}
		a, to = a+n, to+r.N
		if n := len(list); n > 0 && list[n-1].First+list[n-1].N == r.First && list[n-1].To+list[n-1].N == r.To {
			list[n-1].N += r.N
			continue
		}
		list = append(list, r)
	}
	return list
}

// fetchPacked fetches the chunks of runs of rows, and makes the rows of them. Chunks that are corrupt
// are fetched again.
func (d *fetcher) fetchPacked(ctx context.Context, c *column, runs []chunk.Run, dst []byte, soon func() []Range) error {
	p := c.packed
	var need []Range
	for _, r := range runs {
		p.fetched.Stored(r.First, r.First+r.N, func(off, n int64) {
			if n > 0 {
				need = appendRange(need, Range{p.path, off, n})
			}
		})
	}
	held, err := d.pager.Ensure(ctx, need, soon)
	if err != nil {
		return err
	}
	defer held.Release()
	for {
		err := p.fetched.Runs(ctx, dst, runs)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := held.Again(ctx, p.wrap(err)); err != nil {
			return err
		}
	}
}

// fetchRun is Slice through the pager, of rows that exist.
func (d *fetcher) fetchRun(ctx context.Context, c *column, a, b int) (tensor.View, error) {
	if c.packed != nil {
		dst := make([]byte, (b-a)*c.size)
		return tensor.Of(c.spec, b-a, dst), d.fetchPacked(ctx, c, c.packed.runs(nil, a, b, 0), dst, nil)
	}
	held, err := d.pager.Ensure(ctx, c.ranges(nil, a, b), nil)
	if err != nil {
		return tensor.View{}, err
	}
	defer held.Release()
	if held.InFiles() && d.pager.Stays() {
		return d.runLocal(c, a, b)
	}
	dst := make([]byte, (b-a)*c.size)
	return tensor.Of(c.spec, b-a, dst), d.readHeld(c, a, b, dst)
}

// fetchGather is Gather through the pager.
func (d *fetcher) fetchGather(ctx context.Context, c *column, indices []int, dst []byte) error {
	for _, i := range indices {
		if err := c.check(i, i+1); err != nil {
			return err
		}
	}
	soon := func() []Range { return d.companions(c, indices) }
	if c.packed != nil {
		var runs []chunk.Run
		for k, i := range indices {
			runs = c.packed.runs(runs, i, i+1, int64(k))
		}
		return d.fetchPacked(ctx, c, runs, dst, soon)
	}
	var need []Range
	for _, i := range indices {
		need = c.ranges(need, i, i+1)
	}
	held, err := d.pager.Ensure(ctx, need, soon)
	if err != nil {
		return err
	}
	defer held.Release()
	if held.InFiles() {
		return d.gatherLocal(ctx, c, indices, dst)
	}
	for k, i := range indices {
		if err := d.readHeld(c, i, i+1, dst[k*c.size:(k+1)*c.size]); err != nil {
			return err
		}
	}
	return nil
}

// companionBytes is the size up to which what belongs to a record is fetched with the rest of it:
// labels, which are little, and without which a batch is not whole.
const companionBytes = 64

// companions returns where small fields other than that of c have records.
func (d *fetcher) companions(c *column, indices []int) (list []Range) {
	for i := range d.fields {
		f := &d.fields[i]
		if f.rows == c || f.offsets != nil || f.rows.size > companionBytes {
			continue
		}
		for _, i := range indices {
			list = f.rows.ranges(list, i, i+1)
		}
	}
	return list
}

// fetchWarm is Warm through the pager, of records that exist.
func (d *fetcher) fetchWarm(ctx context.Context, f *field, a, b int) error {
	need, err := d.recordRanges(ctx, f, consecutive(a, b))
	if err != nil {
		return err
	}
	held, err := d.pager.Ensure(ctx, need, nil)
	if err != nil {
		return err
	}
	defer held.Release()
	if !held.InFiles() {
		return nil
	}
	return d.warmRecords(f, a, b)
}

// Ranges returns where records of a field are, for a Pager to fetch them ahead. Of a ragged field it
// waits for their offsets.
func (d *Dataset) Ranges(ctx context.Context, field string, indices []int) ([]Range, error) {
	f, err := d.field(field)
	if err != nil {
		return nil, err
	}
	return d.recordRanges(ctx, f, indices)
}

func (d *fetcher) recordRanges(ctx context.Context, f *field, indices []int) (list []Range, err error) {
	for _, i := range indices {
		if err := checkRange(f.spec.Name, i, i+1, d.len()); err != nil {
			return nil, err
		}
		if f.offsets == nil {
			list = f.rows.ranges(list, i, i+1)
		}
	}
	if f.offsets == nil {
		return list, nil
	}
	records, ends, err := d.fetchOffsets(ctx, f, indices)
	if err != nil {
		return nil, err
	}
	ends.Release()
	return f.ranges(records), nil
}

func consecutive(a, b int) []int {
	list := make([]int, b-a)
	for i := range list {
		list[i] = a + i
	}
	return list
}

// rowSpan is where the rows of a record are in the values.
type rowSpan struct{ row, n int }

func (f *field) ranges(records []rowSpan) (list []Range) {
	for _, r := range records {
		list = f.rows.ranges(list, r.row, r.row+r.n)
	}
	return list
}

// fetchOffsets fetches the offsets of records of a ragged field, and returns where their rows are. The
// offsets are held.
func (d *fetcher) fetchOffsets(ctx context.Context, f *field, indices []int) (list []rowSpan, ends Held, err error) {
	var need []Range
	for _, i := range indices {
		if err := checkRange(f.spec.Name, i, i+1, d.len()); err != nil {
			return nil, nil, err
		}
		e := &f.extents[f.index.Find(int64(i))]
		at := e.Offset + int64(i) - e.First
		need = f.offsets.ranges(need, int(e.Offset), int(e.Offset)+1)
		need = f.offsets.ranges(need, int(at), int(at)+2)
	}
	if ends, err = d.pager.Ensure(ctx, need, nil); err != nil {
		return nil, nil, err
	}
	for _, i := range indices {
		r, err := d.heldRecord(f, ends, i)
		if err != nil {
			ends.Release()
			return nil, nil, err
		}
		list = append(list, r)
	}
	return list, ends, nil
}

// heldRecord is record for offsets that are held.
func (d *fetcher) heldRecord(f *field, ends Held, i int) (rowSpan, error) {
	if ends.InFiles() {
		row, n, err := d.record(f, i)
		return rowSpan{row, n}, err
	}
	e := &f.extents[f.index.Find(int64(i))]
	at := int(e.Offset + int64(i) - e.First)
	var b [24]byte
	err := d.readHeld(f.offsets, int(e.Offset), int(e.Offset)+1, b[:8])
	if err == nil {
		err = d.readHeld(f.offsets, at, at+2, b[8:])
	}
	if err != nil {
		return rowSpan{}, err
	}
	word := func(k int) int64 { return int64(binary.LittleEndian.Uint64(b[8*k:])) }
	w, err := e.Walk(int64(i)-e.First, word(0), word(1))
	if err != nil {
		return rowSpan{}, f.corrupt(err)
	}
	r := rowSpan{row: int(e.Row + w.Row())}
	n, err := w.Next(word(2))
	if err != nil {
		return rowSpan{}, f.corrupt(err)
	}
	r.n = int(n)
	return r, nil
}

// fetchLengths is Lengths through the pager, which returns where the rows are.
func (d *fetcher) fetchLengths(ctx context.Context, f *field, indices []int, offsets []int64) ([]rowSpan, error) {
	records, ends, err := d.fetchOffsets(ctx, f, indices)
	if err != nil {
		return nil, err
	}
	ends.Release()
	offsets[0] = 0
	for k, r := range records {
		offsets[k+1] = offsets[k] + int64(r.n)
	}
	return records, nil
}

// fetchRows fills dst with the rows of records, back to back.
func (d *fetcher) fetchRows(ctx context.Context, f *field, records []rowSpan, dst []byte) error {
	c := f.rows
	if c.packed != nil {
		var runs []chunk.Run
		to := int64(0)
		for _, r := range records {
			runs = c.packed.runs(runs, r.row, r.row+r.n, to)
			to += int64(r.n)
		}
		return d.fetchPacked(ctx, c, runs, dst, nil)
	}
	held, err := d.pager.Ensure(ctx, f.ranges(records), nil)
	if err != nil {
		return err
	}
	defer held.Release()
	for _, r := range records {
		n := r.n * c.size
		if held.InFiles() {
			err = d.copyRun(c, r.row, r.row+r.n, dst[:n])
		} else {
			err = d.readHeld(c, r.row, r.row+r.n, dst[:n])
		}
		if err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// fetchRagged is SliceRagged through the pager, of records that exist.
func (d *fetcher) fetchRagged(ctx context.Context, f *field, a, b int, offsets []int64) (tensor.View, error) {
	records, err := d.fetchLengths(ctx, f, consecutive(a, b), offsets)
	if err != nil {
		return tensor.View{}, err
	}
	n := int(offsets[b-a])
	if f.rows.packed == nil && d.pager.Stays() && n > 0 {
		first := slices.IndexFunc(records, func(r rowSpan) bool { return r.n > 0 })
		return d.fetchRun(ctx, f.rows, records[first].row, records[first].row+n)
	}
	dst := make([]byte, n*f.rows.size)
	return tensor.Of(f.rows.spec, n, dst), d.fetchRows(ctx, f, records, dst)
}

// fetchGatherRagged is GatherRagged through the pager.
func (d *fetcher) fetchGatherRagged(ctx context.Context, f *field, indices []int, offsets []int64, dst []byte) ([]byte, error) {
	records, err := d.fetchLengths(ctx, f, indices, offsets)
	if err != nil {
		return dst, err
	}
	need := int(offsets[len(indices)]) * f.rows.size
	dst = slices.Grow(dst[:0], need)[:need]
	return dst, d.fetchRows(ctx, f, records, dst)
}

// corrupt says of which field an error of offsets is.
func (f *field) corrupt(err error) error { return fmt.Errorf("mmapds: field %q: %w", f.spec.Name, err) }
