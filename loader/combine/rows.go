package combine

import (
	"errors"
	"fmt"
	"math/bits"
	"sort"

	"github.com/penstock/penstock/internal/subset"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/loader/internal/digest"
)

// rows maps records of a View to records of its Source: a list of numbers, a set, or runs of consecutive numbers. The
// zero rows with a length map every record to itself, and rows that repeat map every record to record 0. The three forms
// exist because of memory: a filter over a billion records is a bitmap, a split is a few runs, and only an arbitrary order
// needs 8 bytes a record.
type rows struct {
	n       int
	repeats bool
	list    []int         // numbers; or
	set     *subset.Index // numbers in ascending order; or
	runs
}

// runs is an ascending list of places, divided into runs of consecutive record numbers.
type runs struct {
	firsts []int // the first number of each run,
	ends   []int // and how many records the runs up to each have

	// guide has the run of each place that is a multiple of 1<<shift, so that finding a run costs the same
	// for any number of runs.
	guide []uint32
	shift uint
}

// maxRecords limits the records of a Source, so that their numbers and bytes fit into an int with
// room for arithmetic.
const maxRecords = 1 << 46

// shortRun is the mean length of runs from which on runs take less memory than a list of numbers.
const shortRun = 4

// newRows returns the records that a Select chooses from a Source of n records.
func newRows(n int, s Select) (rows, error) {
	given := 0
	for _, is := range []bool{s.Records != nil, s.Ranges != nil, s.Set != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return rows{}, errors.New("of Records, Ranges and Set more than one is given; give one")
	}
	for i, r := range s.Ranges {
		if r[0] < 0 || r[1] < r[0] || r[1] > n {
			return rows{}, fmt.Errorf("Ranges[%d] is [%d, %d); the Source has %d records", i, r[0], r[1], n)
		}
	}
	switch {
	case given == 0:
		return rows{n: n}, nil
	case s.Set != nil:
		return rowsOfSet(n, s.Set)
	case s.Records != nil:
		return rowsOfNumbers(n, s.Records)
	}
	var r rows
	for _, a := range s.Ranges {
		if r.add(a[0], a[1]-a[0]); r.n > maxRecords {
			return rows{}, fmt.Errorf("Ranges have more than %d records", maxRecords)
		}
	}
	r.makeGuide(r.n)
	return r, nil
}

// rowsOfNumbers returns the records of a list: as runs, or, as soon as the runs turn out too short,
// as the list itself.
func rowsOfNumbers(n int, numbers []int) (rows, error) {
	var r rows
	for i := 0; i < len(numbers); {
		k := 1
		for i+k < len(numbers) && numbers[i+k] == numbers[i]+k {
			k++
		}
		if numbers[i] < 0 || numbers[i]+k > n {
			return rows{}, fmt.Errorf("Records[%d] is in [%d, %d]; the Source has %d records", i, numbers[i], numbers[i]+k-1, n)
		}
		if r.add(numbers[i], k); len(r.ends) > len(numbers)/shortRun {
			return rows{n: len(numbers), list: numbers}, checkNumbers(n, numbers, i+k)
		}
		i += k
	}
	r.makeGuide(r.n)
	return r, nil
}

// checkNumbers refuses numbers, from place i on, that are no record.
func checkNumbers(n int, numbers []int, i int) error {
	for ; i < len(numbers); i++ {
		if uint(numbers[i]) >= uint(n) {
			return fmt.Errorf("Records[%d] is in [%d, %d]; the Source has %d records", i, numbers[i], numbers[i], n)
		}
	}
	return nil
}

// rowsOfSet returns the records of a Set, as runs if these are long enough to take little memory.
func rowsOfSet(n int, set *expr.Set) (rows, error) {
	if set.Len() != n {
		return rows{}, fmt.Errorf("Set is of %d records; the Source has %d", set.Len(), n)
	}
	count := countRuns(set.Words())
	if count > set.Count()/longRun {
		return rows{n: set.Count(), set: subset.New(set.Words())}, nil
	}
	r := rows{runs: runs{firsts: make([]int, 0, count), ends: make([]int, 0, count)}}
	for i := range set.All() {
		r.add(i, 1)
	}
	r.makeGuide(r.n)
	return r, nil
}

// longRun is the mean length of runs from which on a Set is kept as runs. Below it, finding a
// record is faster in the bits.
const longRun = 1024

// countRuns returns how many runs of set bits there are: it counts bits whose predecessor is not
// set.
func countRuns(words []uint64) (n int) {
	last := uint64(0) // the bit before
	for _, w := range words {
		n += bits.OnesCount64(w &^ (w<<1 | last))
		last = w >> 63
	}
	return n
}

// add appends a run of k records, or extends the last run if the new run continues it.
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
func (r *runs) start(run int) int {
	if run == 0 {
		return 0
	}
	return r.ends[run-1]
}

// makeGuide builds the guide for n places, with about one entry per run.
func (r *runs) makeGuide(n int) {
	if len(r.ends) < 2 {
		return
	}
	r.shift = uint(bits.Len(uint(n / len(r.ends))))
	run := 0
	for place := 0; place < n; place += 1 << r.shift {
		for r.ends[run] <= place {
			run++
		}
		r.guide = append(r.guide, uint32(run))
	}
}

// find returns the run that contains a place. The guide narrows the search to a few runs.
func (r *runs) find(place int) int {
	if r.guide == nil {
		return sort.SearchInts(r.ends, place+1)
	}
	k := place >> r.shift
	run, last := int(r.guide[k]), len(r.ends)-1
	if k+1 < len(r.guide) {
		last = int(r.guide[k+1])
	}
	if last-run > mostSteps {
		return run + sort.SearchInts(r.ends[run:last], place+1)
	}
	for r.ends[run] <= place {
		run++
	}
	return run
}

// mostSteps is the largest number of runs that are searched one by one: for so few runs a binary search is slower.
const mostSteps = 8

// number returns the record at a place.
func (r *runs) number(place int) int {
	run := r.find(place)
	return r.firsts[run] + place - r.start(run)
}

// all reports whether every record is mapped to itself.
func (r *rows) all() bool { return r.list == nil && r.ends == nil && r.set == nil && !r.repeats }

// at returns the number of the record at place i, and how many records, up to place end, have
// consecutive numbers.
func (r *rows) at(i, end int) (record, n int) {
	switch {
	case r.list != nil:
		record, n = r.list[i], 1
		for i+n < end && r.list[i+n] == record+n {
			n++
		}
		return record, n
	case r.set != nil:
		return r.set.Run(i, end)
	case r.repeats:
		return 0, 1
	case r.all():
		return i, end - i
	}
	k := r.find(i)
	return r.firsts[k] + i - r.start(k), min(r.ends[k], end) - i
}

// translate appends to dst the numbers of the records at some places.
func (r *rows) translate(dst, places []int) []int {
	switch {
	case r.all():
		return append(dst, places...)
	case r.list != nil:
		for _, i := range places {
			dst = append(dst, r.list[i])
		}
		return dst
	case r.set != nil:
		return r.set.AppendAt(dst, places)
	case r.repeats:
		return append(dst, make([]int, len(places))...)
	}
	for _, i := range places {
		dst = append(dst, r.number(i))
	}
	return dst
}

// id returns a digest of the records, which does not depend on the form in which they were given: a
// State must resume with the same records as a list or as ranges.
func (r *rows) id() string {
	if r.list == nil && r.set == nil {
		return digest.Of(r.n, r.firsts, r.ends)
	}
	var as rows
	for i := 0; i < r.n; {
		first, n := r.at(i, r.n)
		as.add(first, n)
		i += n
	}
	return as.id()
}
