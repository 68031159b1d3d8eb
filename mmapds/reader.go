package mmapds

import (
	"context"

	"github.com/penstock/penstock/tensor"
)

// reader provides the rows of one column, wherever their bytes are. Everything that a Dataset reads
// goes through a reader: fetching, holding and repeated reads of corrupt transfers are written
// once, in [reader.read].
type reader struct {
	column *column
	files  answer                   // for rows in the files: a *mapped or a *packed, in a *verified if that was asked for
	pager  Pager                    // nil: all is in the files
	held   answer                   // for rows that the pager holds; not used without one
	soon   func(rows []int) []Range // byte ranges that a batch of these rows will need besides

	// The parts of files.
	mapped *mapped // nil if the rows must be decoded
	packed *packed // nil if the rows are stored as they are
	checks *verified

	how, why string // how rows are decoded and why they must be, for people
}

// request says which bytes a call needs from a pager.
type request struct {
	need []Range
	soon func() []Range
	view bool // the bytes must stay in the files after the call, as a view of them is returned
}

// isLocal reports whether all bytes are in the files, so that no pager needs to be asked.
func (r *reader) isLocal() bool { return r.pager == nil || r.pager.Complete() }

// acquire returns an answer for the rows of list, and what holds the rows until Release; nil if
// nothing needs to be held. list is called only if rows may be missing from the files, because
// building it costs more than a small read.
func (r *reader) acquire(ctx context.Context, list func() (request, error)) (answer, Held, error) {
	if r.isLocal() {
		return r.files, nil, nil
	}
	return r.fetch(ctx, list)
}

// fetch acquires the rows of list from the pager, and returns the answer that can read them now:
// the files, if all ranges are in the files and, for a view, will stay there; otherwise held.
func (r *reader) fetch(ctx context.Context, list func() (request, error)) (answer, Held, error) {
	req, err := list()
	if err != nil {
		return nil, nil, err
	}
	held, err := r.pager.Acquire(ctx, req.need, req.soon)
	if err != nil {
		return nil, nil, err
	}
	if r.packed == nil && held.InFiles() && (!req.view || r.pager.Stays()) {
		return r.files, held, nil
	}
	return r.held, held, nil
}

// read makes f read the rows of list. If the rows turn out to have been corrupted in transfer, they
// are fetched and read once more. Rows that are not packed were checked on arrival; packed ones
// show errors only when they are decoded.
func (r *reader) read(ctx context.Context, list func() (request, error), f func(answer) error) error {
	rows, held, err := r.acquire(ctx, list)
	if err != nil {
		return err
	}
	err = f(rows)
	if held == nil {
		if err == nil || r.pager == nil || !r.pager.Distrust(err) {
			return err
		}
		if rows, held, err = r.fetch(ctx, list); err != nil {
			return err
		}
		err = f(rows)
	}
	defer held.Release()
	for err != nil && r.packed != nil && ctx.Err() == nil { // others were checked when they came
		if err = held.Again(ctx, err); err != nil {
			return err
		}
		err = f(rows)
	}
	return err
}

// ranges appends the byte ranges of rows [a, b), which exist; for packed rows, the ranges of their
// chunks.
func (r *reader) ranges(list []Range, a, b int) []Range {
	return r.rangesOf(list, 1, func(int) (int, int) { return a, b })
}

// rangesOf appends the byte ranges of n runs of rows.
func (r *reader) rangesOf(list []Range, n int, run func(k int) (a, b int)) []Range {
	p := r.packed
	if held, ok := r.held.(*packed); ok {
		p = held
	}
	if p != nil {
		return p.ranges(list, n, run)
	}
	for k := range n {
		a, b := run(k)
		list = r.column.ranges(list, a, b)
	}
	return list
}

// rangesOfChunk returns the byte range of one chunk.
func (r *reader) rangesOfChunk(place int64) []Range {
	p := r.packed
	if held, ok := r.held.(*packed); ok {
		p = held
	}
	offset, size := p.r.StoredChunk(place)
	if size == 0 {
		return nil
	}
	return []Range{{p.path, offset, size}}
}

// rangesOfRows appends the byte ranges of single rows.
func (r *reader) rangesOfRows(list []Range, rows []int) []Range {
	return r.rangesOf(list, len(rows), func(k int) (int, int) { return rows[k], rows[k] + 1 })
}

// rangesOfRuns returns the byte ranges of runs of rows.
func (r *reader) rangesOfRuns(runs []rowSpan) []Range {
	return r.rangesOf(nil, len(runs), func(k int) (int, int) { return runs[k].row, runs[k].row + runs[k].n })
}

// slice returns rows [a, b), which exist. Without a pager it goes straight to the files: callers
// slice small records one by one, where building a request would cost more than the slice.
func (r *reader) slice(a, b int) (tensor.View, error) {
	var data []byte
	var err error
	if r.pager == nil {
		data, err = r.files.slice(a, b)
	} else {
		data, err = r.fetchSlice(a, b)
	}
	if err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(r.column.spec, b-a, data), nil
}

// fetchSlice is slice for a dataset with a pager.
func (r *reader) fetchSlice(a, b int) (data []byte, err error) {
	err = r.read(context.Background(), func() (request, error) {
		return request{need: r.ranges(nil, a, b), view: true}, nil
	}, func(rows answer) (err error) {
		data, err = rows.slice(a, b)
		return err
	})
	return data, err
}

// gather copies rows to dst, one after the other. A row that does not exist is an error.
func (r *reader) gather(ctx context.Context, rows []int, dst []byte) error {
	return r.read(ctx, func() (req request, err error) {
		for _, i := range rows {
			if err := r.column.check(i, i+1); err != nil {
				return req, err
			}
		}
		req.need = r.rangesOfRows(nil, rows)
		req.soon = func() []Range { return r.soon(rows) }
		return req, nil
	}, func(from answer) error { return from.gather(ctx, rows, dst, nil) })
}

// copy copies runs of rows to dst, one after the other. The rows must exist.
func (r *reader) copy(ctx context.Context, runs []rowSpan, dst []byte) error {
	return r.read(ctx, func() (request, error) {
		return request{need: r.rangesOfRuns(runs)}, nil
	}, func(from answer) error { return from.copy(ctx, runs, dst, nil) })
}

// warm brings rows [a, b) into memory or into the files. The rows must exist.
func (r *reader) warm(ctx context.Context, a, b int) error {
	return r.read(ctx, func() (request, error) {
		return request{need: r.ranges(nil, a, b)}, nil
	}, func(from answer) error { return from.warm(a, b) })
}

// prefetch starts to read rows [a, b). The rows must exist.
func (r *reader) prefetch(a, b int) error {
	if !r.isLocal() {
		r.pager.Prefetch(r.ranges(nil, a, b))
		return nil
	}
	return r.files.prefetch(a, b)
}

// contiguous reports whether rows [a, b) are one piece of mapped memory. The rows must exist.
func (r *reader) contiguous(a, b int) bool {
	return a == b || r.mapped != nil && r.mapped.memory.contiguous(a, b)
}

// isDirect reports whether rows are read past the page cache.
func (r *reader) isDirect() bool { return r.mapped != nil && r.mapped.isDirect() }

// isWarm reports whether rows [a, b) are a view of pages that were brought in, with nothing left to
// check. The rows must exist.
func (r *reader) isWarm(a, b int) bool {
	return r.mapped != nil && r.checks == nil && r.isLocal() && r.mapped.memory.isWarm(a, b)
}
