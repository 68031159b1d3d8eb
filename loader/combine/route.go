package combine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// route maps the fields and records of a combined Source to its parts: which part has them, under
// which name and number. A [View] takes each field from a part, and selects records of it. A
// [Concat] takes each record from a part.
//
// All methods of a Source that name records are methods of route, so that combined Sources have no
// code of their own for them. route has few branches and no interface calls, because the loader
// asks for the places of single records.
type route struct {
	named
	specs  []tensor.Spec
	fields []viewed  // one for each of specs
	rows   rows      // the numbers of the records among those of all segments
	ends   []int     // records in the segments up to each; the last one has no end
	pool   sync.Pool // of *groups
}

var _ interface {
	loader.RaggedSource
	loader.ChunkedSource
	loader.GridSource
	loader.MappedSource
	loader.FaultSource
	loader.CheckedSource
	loader.RemoteSource
	loader.DescribedSource
	loader.NamedSource
	loader.ClassedSource
	loader.BoundedSource
	loader.Identifier
	loader.GenerationSource
} = (*route)(nil)

// viewed is the part that has a field in the first segment. In segment i, the part is i places
// further in members.
type viewed struct {
	part int
	name string // there
}

// stretch is a run of consecutive records in one part.
type stretch struct {
	*member
	field   string // its name there
	segment int
	first   int
	n       int
}

// Len returns the number of records.
func (r *route) Len() int { return r.rows.n }

// Specs returns the fields.
func (r *route) Specs() []tensor.Spec { return r.specs }

// field returns the place of the named field.
func (r *route) field(name string) (viewed, error) {
	i := fieldOf(r.specs, name)
	if i < 0 {
		return viewed{}, fmt.Errorf("combine: %s: there is no field %q", r.kind, name)
	}
	return r.fields[i], nil
}

// segment returns the segment that contains a number. The binary search is written out, because the loader asks for
// single records, and a function call for each comparison takes longer than the rest.
func (r *route) segment(number int) int {
	first, last := 0, len(r.ends)-1
	for first < last {
		if mid := (first + last) / 2; number < r.ends[mid] {
			last = mid
		} else {
			first = mid + 1
		}
	}
	return first
}

// start returns the first number of a segment.
func (r *route) start(segment int) int {
	if segment == 0 {
		return 0
	}
	return r.ends[segment-1]
}

// at returns the place of the first of records [a, b) of a field, with as many of the following
// records as are consecutive there.
func (r *route) at(field string, a, b int) (s stretch, err error) {
	i := fieldOf(r.specs, field)
	if i < 0 || a < 0 || b < a || b > r.rows.n {
		return s, r.missing(field, a, b)
	}
	s.field = r.fields[i].name
	switch {
	case a == b:
	case r.rows.all():
		s.first, s.n = a, b-a
	default:
		s.first, s.n = r.rows.at(a, b)
	}
	if len(r.ends) > 1 {
		s.segment = r.segment(s.first)
		s.n = min(s.n, r.ends[s.segment]-s.first)
		s.first -= r.start(s.segment)
	}
	s.member = &r.members[r.fields[i].part+s.segment]
	return s, nil
}

// missing returns the error of records [a, b) or a field that do not exist.
func (r *route) missing(field string, a, b int) error {
	if _, err := r.field(field); err != nil {
		return err
	}
	return fmt.Errorf("combine: %s: records [%d, %d) of %d do not exist", r.kind, a, b, r.rows.n)
}

// whole returns the place of records [a, b) of a field if they are consecutive there.
func (r *route) whole(field string, a, b int) (s stretch, ok bool) {
	s, err := r.at(field, a, b)
	return s, err == nil && s.n == b-a
}

// each calls f for every stretch of records [a, b), until it fails.
func (r *route) each(field string, a, b int, f func(p *member, name string, first, end int) error) error {
	for a < b {
		s, err := r.at(field, a, b)
		if err != nil {
			return err
		}
		if err := f(s.member, s.field, s.first, s.first+s.n); err != nil {
			return r.renumber(err, s.segment, a, a+s.n)
		}
		a += s.n
	}
	return nil
}

// same reports whether every record has the same number in its part, so that nothing needs
// translation.
func (r *route) same() bool { return r.rows.all() && len(r.ends) == 1 }

// renumber replaces the record number in an error of a part by the number in the combined Source,
// one of [a, b). The user knows only the latter.
func (r *route) renumber(err error, segment, a, b int) error {
	if err == nil || r.same() {
		return err
	}
	var named loader.RecordError
	if !errors.As(err, &named) {
		return err
	}
	number := r.start(segment) + named.Record()
	if r.rows.all() {
		return recordError{err, number, fmt.Sprintf("record %d (source %d)", number, segment)}
	}
	for a < b {
		first, n := r.rows.at(a, b)
		if k := number - first; k >= 0 && k < n {
			return failed(err, a+k)
		}
		a += n
	}
	return err
}

// renumberOf is renumber for a list of records. It searches the list instead of inverting the
// selection, which may have a record several times.
func (r *route) renumberOf(err error, segment int, numbers, records []int) error {
	if err == nil || r.rows.all() {
		return r.renumber(err, segment, 0, 0)
	}
	var named loader.RecordError
	if errors.As(err, &named) {
		for k, number := range numbers {
			if number == r.start(segment)+named.Record() {
				return failed(err, records[k])
			}
		}
	}
	return err
}

func (r *route) work(field string) (most int) {
	f, err := r.field(field)
	if err != nil {
		return 0
	}
	for _, m := range r.members[f.part : f.part+len(r.ends)] {
		most = max(most, workOf(m.Source, f.name))
	}
	return most
}
