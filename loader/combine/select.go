package combine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/tensor"
)

// Select chooses the records and fields of a [View]. The zero Select has all records and fields.
type Select struct {
	Records []int             // numbers, in any order, each as often as it shall come; or
	Ranges  [][2]int          // ranges [first, end) of records; or
	Set     *expr.Set         // the records that [expr.Find] found, in ascending order; none of the three means all
	Fields  []string          // the fields, in this order; none means all
	Rename  map[string]string // new names, by the name in the Source
}

// NewSelect returns the View of some records and fields of src. The caller still closes src.
func NewSelect(src loader.Source, s Select) (*View, error) {
	v, err := newSelect(src, s)
	if err != nil {
		return nil, fmt.Errorf("combine: select: %w", err)
	}
	return v, nil
}

func newSelect(src loader.Source, s Select) (*View, error) {
	m, err := newMember(src)
	if err != nil {
		return nil, err
	}
	records, err := newRows(src.Len(), s)
	if err != nil {
		return nil, err
	}
	v := newView("select", records)
	v.members = members{m}
	specs := src.Specs()
	fields := s.Fields
	if fields == nil {
		for _, spec := range specs {
			fields = append(fields, spec.Name)
		}
	}
	for _, name := range fields {
		i := fieldOf(specs, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no field %q; there are: %s", name, names(specs))
		}
		if err := v.add(0, specs[i], s.Rename[name]); err != nil {
			return nil, err
		}
	}
	for i := range v.specs { // what lies on an image that has another name now
		if to := s.Rename[v.specs[i].Image]; to != "" {
			v.specs[i].Image = to
		}
	}
	for _, old := range slices.Sorted(maps.Keys(s.Rename)) {
		if !slices.Contains(fields, old) {
			return nil, fmt.Errorf("Rename has the field %q, which is not chosen; there are: %s", old,
				strings.Join(fields, ", "))
		}
	}
	return v, nil
}

// NewZip returns the View of the fields of all sources side by side: record i has the fields of record i of each
// source. They must have the same number of records, and fields of different names; [Select].Rename gives a field
// another name. The caller still closes the sources.
func NewZip(sources ...loader.Source) (*View, error) {
	v, err := newZip(sources)
	if err != nil {
		return nil, fmt.Errorf("combine: zip: %w", err)
	}
	return v, nil
}

func newZip(sources []loader.Source) (*View, error) {
	if len(sources) == 0 {
		return nil, errors.New("no sources")
	}
	v := newView("zip", rows{n: sources[0].Len()})
	for i, src := range sources {
		m, err := newMember(src)
		if err != nil {
			return nil, fmt.Errorf("source %d: %w", i, err)
		}
		if src.Len() != v.rows.n {
			return nil, fmt.Errorf("source %d has %d records, and the first one has %d", i, src.Len(), v.rows.n)
		}
		v.members = append(v.members, m)
		for _, spec := range src.Specs() {
			if err := v.add(i, spec, ""); err != nil {
				return nil, fmt.Errorf("source %d: %w", i, err)
			}
		}
	}
	return v, nil
}

// add adds a field of a part, renamed unless name is "".
func (r *route) add(part int, spec tensor.Spec, name string) error {
	f := viewed{part: part, name: spec.Name}
	if spec.Ragged && r.members[part].can.Ragged == nil {
		return fmt.Errorf("field %q has records of variable length, and the Source is not a loader.RaggedSource", spec.Name)
	}
	if name != "" {
		spec.Name = name
	}
	if fieldOf(r.specs, spec.Name) >= 0 {
		return fmt.Errorf("two fields have the name %q; rename one of them", spec.Name)
	}
	r.specs, r.fields = append(r.specs, spec), append(r.fields, f)
	return nil
}
