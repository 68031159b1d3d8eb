package combine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/expr"
)

// Join joins the records of two Sources that have the same key.
type Join struct {
	// On is the field of the left side with the key: one number, label or string per record, or "source_name", the
	// names of the records' samples. Numbers of any width match if they are equal, integers with integers and
	// floats with floats; NaN matches NaN, as in pandas. RightOn is the field of the right side; "" means the name
	// in On.
	On      string `json:"on"`
	RightOn string `json:"right_on,omitempty"`

	// How says which records of the left side the view has; "" means JoinInner.
	How JoinKind `json:"how,omitempty"`

	// Many lets several records of the left side have the same key. On the right side, that is always an error.
	Many bool `json:"many,omitempty"`

	// Fill has the values, for JoinLeft, of the right side's fields in records without a match: a number for all
	// elements ("nan", "inf" and "-inf" too), the name of a class, a string, or an empty list for a field of variable
	// length.
	Fill FillValues `json:"fill,omitempty"`
}

// JoinKind says what happens to a record of the left side whose key the right side does not have.
type JoinKind string

// The kinds of a Join.
const (
	JoinInner JoinKind = "inner" // it is left out
	JoinLeft  JoinKind = "left"  // its fields of the right side take the values of Fill
)

// Matches lists the records of two Sources that belong together. It must not be changed while the View is in use.
type Matches struct {
	Of []int // the record of the right side for each record of the view; -1 if Fill has its values

	Left, Right []int // records of each side without a match, in ascending order
}

// NewJoin returns the View of the fields of two Sources side by side, in the order of the left one: each record of the
// left side with the record of the right side that has the same key. The key of the right side is left out if it has
// the name of the left one. The caller still closes the Sources.
//
// NewJoin reads the keys of both sides, and no other field. It takes 24 bytes of memory for each record of the right
// side, of 2^26 at a time, and about 24 for each of the left side. A key that the right side has twice is an error;
// beyond 2^26 records, if the left side has it, too.
func NewJoin(ctx context.Context, left, right loader.Source, j Join) (*View, *Matches, error) {
	v, m, err := newJoin(ctx, left, right, j, matchPart)
	if err != nil {
		return nil, nil, fmt.Errorf("combine: join: %w", err)
	}
	return v, m, nil
}

func newJoin(ctx context.Context, left, right loader.Source, j Join, part int) (*View, *Matches, error) {
	m, err := newMatch(ctx, left, right, &j, part)
	if err != nil {
		return nil, nil, err
	}
	return m.view(j)
}

// Match returns the Matches of [NewJoin] without a View, so that it needs no Fill.
func Match(ctx context.Context, left, right loader.Source, j Join) (*Matches, error) {
	m, err := newMatch(ctx, left, right, &j, matchPart)
	if err != nil {
		return nil, fmt.Errorf("combine: match: %w", err)
	}
	_, matches := m.matches(j)
	return matches, nil
}

// newMatch finds the matches of a Join, and sets RightOn. A collision of two 64-bit hashes is
// practically impossible; if it happens, another seed is tried.
func newMatch(ctx context.Context, left, right loader.Source, j *Join, part int) (*match, error) {
	if j.RightOn == "" {
		j.RightOn = j.On
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	l, err := newMember(left)
	if err != nil {
		return nil, fmt.Errorf("left: %w", err)
	}
	r, err := newMember(right)
	if err != nil {
		return nil, fmt.Errorf("right: %w", err)
	}
	m := &match{ctx: ctx, left: keyed{member: l, field: j.On}, right: keyed{member: r, field: j.RightOn}, many: j.Many,
		part: part}
	if err := m.setKeys(); err != nil {
		return nil, err
	}
	for range 3 {
		if err = m.find(); !errors.Is(err, errHash) {
			break
		}
		m.side = nil
	}
	return m, err
}

// check returns the error of an invalid Join.
func (j *Join) check() error {
	switch {
	case j.On == "":
		return errors.New("On, the field with the key, is empty")
	case j.How != "" && j.How != JoinInner && j.How != JoinLeft:
		return fmt.Errorf("how is %q; it must be %s or %s", j.How, JoinInner, JoinLeft)
	case j.Fill != nil && j.How != JoinLeft:
		return errors.New("fill is for how \"left\": records without a match are left out otherwise")
	}
	return nil
}

// setKeys finds the keys of both sides in a form that can be compared. Labels are compared by the
// names of their classes where the other side has names or text: numbers of two datasets may mean
// different classes.
func (m *match) setKeys() (err error) {
	if m.left.key, err = expr.KeyOf(m.ctx, m.left.Source, m.left.field); err != nil {
		return fmt.Errorf("left: %w", err)
	}
	if m.right.key, err = expr.KeyOf(m.ctx, m.right.Source, m.right.field); err != nil {
		return fmt.Errorf("right: %w", err)
	}
	for _, pair := range [][2]*keyed{{&m.left, &m.right}, {&m.right, &m.left}} {
		if label, other := pair[0], pair[1]; label.key.Label && (other.key.Text || other.key.Label) {
			if label.key, err = label.key.Named(); err != nil {
				return err
			}
		}
	}
	if l, r := m.left.key.Kind(), m.right.key.Kind(); l != r {
		return fmt.Errorf("%s is %s on the left side, and %s is %s on the right side", m.left.field, l, m.right.field, r)
	}
	return nil
}

// matches returns the matched pairs of records, and the records of the left side that the view will have.
func (m *match) matches(j Join) (rows []int, out *Matches) {
	matched := 0
	for _, k := range m.of {
		if k != none {
			matched++
		}
	}
	n, only := matched, len(m.of)-matched
	if j.How == JoinLeft {
		n = len(m.of)
	}
	out = &Matches{Of: make([]int, 0, n), Left: make([]int, 0, only)}
	rows = make([]int, 0, n)
	for i, k := range m.of {
		switch {
		case k != none:
			rows, out.Of = append(rows, i), append(out.Of, int(k))
		case j.How == JoinLeft:
			rows, out.Of, out.Left = append(rows, i), append(out.Of, -1), append(out.Left, i)
		default:
			out.Left = append(out.Left, i)
		}
	}
	for i := range m.right.Len() {
		if m.taken[i/64].Load()>>(i%64)&1 == 0 {
			out.Right = append(out.Right, i)
		}
	}
	m.of = nil
	return rows, out
}

// view returns the joined records.
func (m *match) view(j Join) (*View, *Matches, error) {
	rows, out := m.matches(j)
	left := Select{Records: rows}
	if len(rows) == m.left.Len() {
		left.Records = nil
	}
	l, err := newSelect(m.left.Source, left)
	if err != nil {
		return nil, nil, err
	}
	r, err := m.rightSide(j, out)
	if err != nil {
		return nil, nil, err
	}
	v, err := newZip([]loader.Source{l, r})
	return v, out, err
}

// rightSide returns the right side's fields for the records of the view. Records without a match
// are a single record of Fill, which is appended to the right side and selected as often as needed.
func (m *match) rightSide(j Join, out *Matches) (loader.Source, error) {
	var fields []string
	for _, spec := range m.right.Specs() {
		if spec.Name != m.right.field || m.right.field != m.left.field {
			fields = append(fields, spec.Name)
		}
	}
	if fields == nil {
		return nil, errors.New("the right side has no field but the key; to keep the records that it has, use a filter")
	}
	right, err := newSelect(m.right.Source, Select{Fields: fields})
	if err != nil {
		return nil, err
	}
	if j.How != JoinLeft {
		return newSelect(right, Select{Records: out.Of})
	}
	fill, err := j.fill(right)
	if err != nil {
		return nil, err
	}
	both, err := NewConcat(right, fill)
	if err != nil {
		return nil, err
	}
	records := slices.Clone(out.Of)
	for i, k := range records {
		if k < 0 {
			records[i] = right.Len()
		}
	}
	return newSelect(both, Select{Records: records})
}

// fill returns the record with the values of Fill, which stands for the right side of a record
// without a match.
func (j Join) fill(right *View) (*filled, error) {
	var missing []string
	for _, spec := range right.Specs() {
		if _, ok := j.Fill[spec.Name]; !ok {
			missing = append(missing, spec.Name)
		}
	}
	for name := range j.Fill {
		if fieldOf(right.Specs(), name) < 0 {
			return nil, fmt.Errorf("fill: the right side has no field %q; there are: %s", name, names(right.Specs()))
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("how \"left\" needs fill, values for records without a match; there is none for %s",
			strings.Join(missing, ", "))
	}
	return newFilled(right.Specs(), right.Classes, j.Fill, 1)
}
