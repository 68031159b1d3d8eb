package combine

import (
	"context"
	"errors"
	"slices"

	"github.com/penstock/penstock/loader"
)

// rowReads are windows of whole records that one call of the Source reads into the windows' memory. Sources without
// chunks, such as the rows of groups of HDF5, read a run of records at once, which takes as long as a single record.
type rowReads struct {
	windows []int // numbers of the windows in a batch, ascending
	first   []int // the first record of each
	n       int   // records of a window
}

// add adds a window of n records.
func (r *rowReads) add(window, first, n int) {
	r.windows, r.first, r.n = append(r.windows, window), append(r.first, first), n
}

// overlap reports whether most records are in several windows, as in an order that is not shuffled. Such records are
// better read once and kept for the windows that follow.
func (r *rowReads) overlap() bool {
	distinct, end := 0, 0
	for _, first := range slices.Sorted(slices.Values(r.first)) {
		distinct += first + r.n - max(first, min(end, first+r.n))
		end = first + r.n
	}
	return 2*distinct < r.n*len(r.first)
}

// read reads windows of a field, whose records in the batch are indices. Windows that follow each other in dst are
// read together.
func (r *rowReads) read(ctx context.Context, f *windowed, indices []int, dst []byte) error {
	size := f.out.RecordBytes()
	var rows []int
	for a, b := 0, 0; a < len(r.windows); a = b {
		rows = rows[:0]
		for b = a; b < len(r.windows) && r.windows[b] == r.windows[a]+b-a; b++ {
			for k := range r.n {
				rows = append(rows, r.first[b]+k)
			}
		}
		from := r.windows[a]
		if err := f.part.Gather(ctx, f.in.Name, rows, dst[from*size:(from+b-a)*size]); err != nil {
			record, ok := windowOf(err, rows, indices[from:from+b-a])
			if !ok {
				record = indices[from]
			}
			return failed(err, record)
		}
	}
	return nil
}

// windowOf returns the window that contains the record in an error of the Source. rows are the records of the
// windows, the same number for each window; ok is false if no window contains the record.
func windowOf(err error, rows, windows []int) (window int, ok bool) {
	var named loader.RecordError
	if !errors.As(err, &named) {
		return 0, false
	}
	k := slices.Index(rows, named.Record())
	if k < 0 {
		return 0, false
	}
	return windows[k/(len(rows)/len(windows))], true
}
