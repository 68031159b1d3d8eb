package combine

import (
	"errors"
	"fmt"
	"sort"

	"github.com/penstock/penstock/loader/internal/digest"
)

// rows are some records of a Source, in some order: a list of numbers, or runs of consecutive ones. The zero rows with
// a length are all of them.
type rows struct {
	n      int
	list   []int // numbers; or
	firsts []int // the first number of each run,
	ends   []int // and how many records the runs up to each have
}

// shortRun is how many records a run must have on average, so that runs take less memory than numbers.
const shortRun = 4

// newRows returns records by number or by range [first, end) of n records.
func newRows(n int, numbers []int, ranges [][2]int) (rows, error) {
	if numbers != nil && ranges != nil {
		return rows{}, errors.New("both Records and Ranges are given; give one")
	}
	for i, r := range ranges {
		if r[0] < 0 || r[1] < r[0] || r[1] > n {
			return rows{}, fmt.Errorf("Ranges[%d] is [%d, %d); the Source has %d records", i, r[0], r[1], n)
		}
	}
	if numbers == nil && ranges == nil {
		return rows{n: n}, nil
	}
	var r rows
	for _, a := range ranges {
		r.add(a[0], a[1]-a[0])
	}
	for i := 0; i < len(numbers); {
		k := 1
		for i+k < len(numbers) && numbers[i+k] == numbers[i]+k {
			k++
		}
		if numbers[i] < 0 || numbers[i]+k > n {
			return rows{}, fmt.Errorf("Records[%d] is in [%d, %d]; the Source has %d records", i, numbers[i], numbers[i]+k-1, n)
		}
		r.add(numbers[i], k)
		i += k
	}
	if numbers != nil && len(r.ends) > len(numbers)/shortRun {
		return rows{n: r.n, list: numbers}, nil
	}
	return r, nil
}

// add appends a run of k records. One that follows the last one makes that longer.
func (r *rows) add(first, k int) {
	if k == 0 {
		return
	}
	last := len(r.ends) - 1
	if last >= 0 && r.firsts[last]+r.n-r.start(last) == first {
		r.n += k
		r.ends[last] = r.n
		return
	}
	r.n += k
	r.firsts, r.ends = append(r.firsts, first), append(r.ends, r.n)
}

// start returns the place of the first record of a run.
func (r *rows) start(run int) int {
	if run == 0 {
		return 0
	}
	return r.ends[run-1]
}

// all reports whether every record is itself.
func (r *rows) all() bool { return r.list == nil && r.ends == nil }

// at returns the number of the record at place i, and how many up to place end follow it one after the other.
func (r *rows) at(i, end int) (record, n int) {
	switch {
	case r.list != nil:
		record, n = r.list[i], 1
		for i+n < end && r.list[i+n] == record+n {
			n++
		}
		return record, n
	case r.all():
		return i, end - i
	}
	k := sort.SearchInts(r.ends, i+1)
	return r.firsts[k] + i - r.start(k), min(r.ends[k], end) - i
}

// translate sets dst to the numbers of the records at some places.
func (r *rows) translate(dst, places []int) []int {
	switch {
	case r.all():
		return append(dst, places...)
	case r.list != nil:
		for _, i := range places {
			dst = append(dst, r.list[i])
		}
		return dst
	}
	for _, i := range places {
		k := sort.SearchInts(r.ends, i+1)
		dst = append(dst, r.firsts[k]+i-r.start(k))
	}
	return dst
}

// id returns a digest of the records, the same however they were given.
func (r *rows) id() string {
	if r.list == nil {
		return digest.Of(r.n, r.firsts, r.ends)
	}
	var runs rows
	for i := 0; i < r.n; {
		first, n := r.at(i, r.n)
		runs.add(first, n)
		i += n
	}
	return runs.id()
}
