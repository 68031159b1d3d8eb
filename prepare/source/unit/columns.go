package unit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Names of the fields that rows of units have besides the members.
const (
	Episode = "episode" // number of the unit
	Step    = "step"    // number of the row in its unit
)

// Columns is the columns of all units together.
type Columns struct {
	List  []array.Column
	Hints []string // sentences about what was left out

	units    []Unit
	records  *Records
	starts   []int64 // number of the first record of each unit, and at the end the number of records
	members  []wanted
	selected []column.Selection // by the user; nil if all members were chosen
	known    []string           // names of the members of the first unit
	pool     *pool
	splits   source.FileSplits // of the units by their names

	axis string // name of the axis of the rows; "" if it has no name, or units are records

	// Coordinates are the members of files that are the coordinates of axes of the fields, by the name of the axis. All
	// files have the same coordinates of axes within a row.
	Coordinates map[string]source.Coordinates

	coordinates map[string]string // the members of units that are the coordinates of axes, by the name of the axis
}

// wanted is a member that becomes a field.
type wanted struct {
	Member
	as    column.Selection
	fixed int64 // if units are records: number of rows in every unit; -1 if they differ
	photo bool  // rows are image files, padded with zeros to a size that differs between units

	features, classes names
	absent            []byte // value of a column that a unit does not have
}

// NewColumns returns the columns of units, of which there must be at least one. The selection names members,
// attributes as @NAME, and [Episode] and [Step]. nil selects all members, and for rows of sequences also Episode
// and Step.
func NewColumns(units []Unit, records *Records, selection []column.Selection) (*Columns, error) {
	c := &Columns{units: units, records: records, starts: make([]int64, 1, len(units)+1), splits: splitsOf(units),
		selected: selection}
	// The first unit decides the members; the other units are compared with the first while they are counted.
	err := c.choose(selection)
	if err == nil {
		err = c.findPhotos()
	}
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		n, err := c.count(u)
		if err != nil {
			return nil, err
		}
		last := c.starts[len(c.starts)-1]
		// Counts come from the files, and their sum must not overflow.
		if n > math.MaxInt64-last {
			return nil, fmt.Errorf("%s has %d rows, which are with those before more than 2^63", u.Name(), n)
		}
		c.starts = append(c.starts, last+n)
	}
	var names []string
	for _, m := range c.members {
		names = append(names, m.Name)
	}
	if c.records.joinsNames() && !slices.ContainsFunc(c.members, func(w wanted) bool { return w.Field.Features != nil }) {
		return nil, fmt.Errorf("align %q: no array has columns with names, such as the genes of cells", c.records.Align)
	}
	for i := 0; i < len(c.members) && err == nil; i++ {
		err = c.joinNames(&c.members[i])
	}
	// From here on Close has something to close.
	c.pool = newPool(units, names)
	if err == nil && records.Rows {
		err = c.compare()
	}
	if err == nil {
		err = c.build(selection)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close closes the units.
func (c *Columns) Close() error { return c.pool.Close() }

// Name returns the name of a record: of its unit, with the name or number of its row.
func (c *Columns) Name(record int64) string {
	k, row := c.place(record)
	if !c.records.Rows {
		return c.units[k].Name()
	}
	if named, ok := c.units[k].(Named); ok {
		return strings.TrimPrefix(c.units[k].Name()+"/"+named.RowName(row), "/")
	}
	return c.units[k].Name() + "[" + strconv.FormatInt(row, 10) + "]"
}

// Splits returns the splits that the names of units give, such as train and test; nil if they give none.
func (c *Columns) Splits() (splits []store.Split) {
	for _, name := range c.splits.Names {
		s := store.Split{Name: name}
		for k, u := range c.units {
			if first, end := c.starts[k], c.starts[k+1]; c.splits.Of[u.Name()] == name && first < end {
				s.Ranges = append(s.Ranges, [2]int64{first, end})
			}
		}
		splits = append(splits, s)
	}
	return splits
}

// splitsOf returns the splits of units by their names.
func splitsOf(units []Unit) source.FileSplits {
	var names []string
	for _, u := range units {
		names = append(names, u.Name())
	}
	return source.SplitsOfFiles(names)
}

// place returns the unit of a record, and the number of the record in that unit.
func (c *Columns) place(record int64) (k int, in int64) {
	// Units without records are skipped by the search, as their start is the start of the next unit.
	k = sort.Search(len(c.units), func(k int) bool { return c.starts[k+1] > record })
	return k, record - c.starts[k]
}

// choose finds the members of the first unit that become fields. Members that cannot have a value in each row are
// left out with a hint.
func (c *Columns) choose(selection []column.Selection) error {
	first, err := c.units[0].Members()
	if err != nil {
		return within(c.units[0], err)
	}
	for _, m := range first {
		c.known = append(c.known, m.Name)
	}
	if len(selection) > 0 {
		err = c.chooseNamed(first, selection)
	} else {
		err = c.chooseAll(first)
	}
	if err == nil && c.records.Rows {
		c.findCoordinates(first)
	}
	return err
}

// chooseAll chooses all members that have a value in each row.
func (c *Columns) chooseAll(first []Member) error {
	var errs []error
	var good, singles, across []string
	if c.records.Rows {
		c.axis = rowAxis(first)
	}
	for _, m := range first {
		switch {
		case m.Optional && m.Err != nil:
			c.Hints = append(c.Hints, fmt.Sprintf("left out: %s: %v", m.Name, m.Err))
		// Left out without a hint: it is a name or an alternative, and not missed.
		case m.Optional:
		case m.Err != nil:
			errs = append(errs, within(c.units[0], fmt.Errorf("%s: %w", m.Name, m.Err)))
		case c.records.Rows && m.Rows < 0:
			singles = append(singles, m.Name)
		case c.isAcross(&m):
			across = append(across, m.Name)
		default:
			good = append(good, m.Name)
			c.members = append(c.members, wanted{Member: m, as: column.Selection{Column: m.Name}, fixed: m.Rows})
		}
	}
	if len(singles) > 0 {
		c.Hints = append(c.Hints, "left out, as they are one value of a unit and not of a row: "+
			source.Enumerate(singles, 5)+"; --fields with their names repeats them in each row")
	}
	if len(across) > 0 {
		c.Hints = append(c.Hints, "left out, as they have no rows along "+c.axis+": "+source.Enumerate(across, 5))
	}
	if len(errs) == 0 && len(c.members) == 0 {
		return fmt.Errorf("%s has no array with rows", c.units[0].Name())
	}
	return column.Undecided(errs, good, false)
}

// isAcross reports whether a member has rows along another axis than the axis of the records.
func (c *Columns) isAcross(m *Member) bool { return c.axis != "" && m.Axis != "" && m.Axis != c.axis }

// rowAxis returns the name of the axis that has the rows: an unlimited axis, or else the first axis of the array
// with the most axes; "" if axes have no names.
func rowAxis(members []Member) (axis string) {
	most := -1
	for _, m := range members {
		switch {
		case m.Axis == "" || m.Err != nil:
		case m.Grows:
			return m.Axis
		case len(m.Field.Shape) > most:
			axis, most = m.Axis, len(m.Field.Shape)
		}
	}
	return axis
}

// chooseNamed finds the members that a selection names.
func (c *Columns) chooseNamed(first []Member, selection []column.Selection) error {
	for _, w := range selection {
		if c.isComputed(w.Column) {
			continue
		}
		i := slices.IndexFunc(first, func(m Member) bool { return m.Name == strings.Trim(w.Column, "/") })
		if i < 0 {
			i = slices.IndexFunc(first, func(m Member) bool { return layout.FieldName(m.Name) == w.Column })
		}
		switch {
		case i < 0:
			var names []string
			for _, m := range first {
				names = append(names, m.Name)
			}
			return fmt.Errorf("fields: %s has no %q%s", c.units[0].Name(), w.Column, suggest.Hint(w.Column, names))
		case first[i].Err != nil:
			return fmt.Errorf("--fields %s: %w", w, first[i].Err)
		}
		if err := w.ErrArray(); err != nil {
			return err
		}
		c.members = append(c.members, wanted{Member: first[i], as: w, fixed: first[i].Rows})
	}
	if len(c.members) > 0 || !c.records.Rows {
		return nil
	}
	// If only the numbers of units and rows are selected, one array must say how many rows there are. The array becomes
	// no field.
	i := slices.IndexFunc(first, func(m Member) bool { return m.Rows >= 0 && m.Err == nil && !m.Optional })
	if i < 0 {
		return errors.New("--fields names no array of the units")
	}
	c.members = []wanted{{Member: first[i], as: column.Selection{Column: first[i].Name}, fixed: first[i].Rows}}
	return nil
}

// findPhotos finds the members whose rows are image files, by the first unit in which a member has rows. Units without
// rows are rare, and opening many units would take long, so a few are looked at.
func (c *Columns) findPhotos() error {
	candidates := make(map[string]*wanted)
	for i := range c.members {
		w := &c.members[i]
		lists := w.Field.Ragged && len(w.Field.Shape) == 0 && !c.records.Rows // lists that are rows are found at the end
		padded := !w.Field.Ragged && len(w.Field.Shape) == 1
		if w.Field.DType == tensor.Uint8 && (padded || lists) && w.Rows >= 0 {
			candidates[w.Name] = w
		}
	}
	for _, u := range c.units[:min(len(c.units), 8)] {
		if len(candidates) == 0 {
			break
		}
		if err := findPhotos(u, candidates); err != nil {
			return within(u, err)
		}
	}
	return nil
}

// findPhotos says of the candidates that have rows in a unit whether these are image files, and removes them.
func findPhotos(u Unit, candidates map[string]*wanted) (err error) {
	members, err := u.Members()
	if err != nil {
		return err
	}
	var names []string
	for _, m := range members {
		if candidates[m.Name] != nil && m.Err == nil && m.Rows > 0 {
			names = append(names, m.Name)
		}
	}
	if names == nil {
		return nil
	}
	columns, closer, err := u.Open(names)
	if err != nil {
		return err
	}
	if closer != nil {
		defer func() { err = errors.Join(err, closer.Close()) }()
	}
	for i, column := range columns {
		candidates[names[i]].photo = column.IsPhotos()
		delete(candidates, names[i])
	}
	return nil
}

// isComputed reports whether a selected name is not a member: an attribute, Episode or Step.
func (c *Columns) isComputed(name string) bool {
	return strings.HasPrefix(name, "@") || strings.HasPrefix(name, "/@") ||
		c.records.Rows && (name == Episode || name == Step)
}

// count returns the number of records in a unit, and checks that the unit has the members of the first unit.
func (c *Columns) count(u Unit) (int64, error) {
	members, err := u.Members()
	if err != nil {
		return 0, within(u, err)
	}
	byName := make(map[string]*Member, len(members))
	for i := range members {
		byName[members[i].Name] = &members[i]
	}
	if len(members) == 0 && c.records.Rows && !slices.ContainsFunc(c.members, wanted.hasNames) {
		c.Hints = append(c.Hints, u.Name()+" has no arrays, and so no records")
		return 0, nil
	}
	least, most := int64(-1), int64(-1)
	for i := range c.members {
		w := &c.members[i]
		m := byName[w.Name]
		if err := c.alike(u, w, m); err != nil {
			return 0, err
		}
		// For raw files with any number of rows, equal lengths are chance.
		if m.Rows != w.fixed || c.records.Type != nil && c.records.Type.Ragged {
			w.fixed = -1
		}
		if size := int64(max(1, m.Field.RecordBytes())); !c.records.Rows && m.Rows > source.MaxValue/size {
			return 0, fmt.Errorf("%s/%s has %d rows of %d bytes, too many for one record; take rows as records: %s, or %s",
				u.Name(), w.Name, m.Rows, size, shell.Command("--records", c.records.String()+rows),
				c.without(w.Name))
		}
		if w.Field.Features != nil {
			w.features.of = append(w.features.of, m.Field.Features)
		}
		if w.Field.Classes != nil {
			w.classes.of = append(w.classes.of, m.Field.Classes)
		}
		if m.Rows < 0 {
			continue
		}
		if least < 0 {
			least = m.Rows
		}
		least, most = min(least, m.Rows), max(most, m.Rows)
	}
	if err := c.additional(u, members); err != nil {
		return 0, err
	}
	switch {
	case !c.records.Rows:
		return 1, nil
	case least != most && c.records.Align != AlignStart && c.records.Align != AlignEnd:
		return 0, c.lengthsError(u, byName)
	}
	return max(0, least), nil
}

// alike returns an error if a member differs in type, shape or meaning from the same member in the first unit: a
// field has one type.
func (c *Columns) alike(u Unit, w *wanted, m *Member) error {
	first := c.units[0].Name()
	named := w.Field.Features != nil && m != nil && len(w.Field.Shape) == len(m.Field.Shape)
	switch {
	case m == nil:
		return fmt.Errorf("%s has no %s, which %s has; %s", u.Name(), w.Name, first, c.without(w.Name))
	case m.Err != nil:
		return fmt.Errorf("%s/%s: %w; %s", u.Name(), w.Name, m.Err, c.without(w.Name))
	case w.photo && m.Err == nil && m.Rows >= 0 && m.Field.DType == tensor.Uint8 && len(m.Field.Shape) == 1:
		return nil
	case (m.Rows < 0) != (w.Rows < 0) || m.Field.DType != w.Field.DType || m.Field.Ragged != w.Field.Ragged ||
		m.Field.Content != w.Field.Content || (m.Field.Classes == nil) != (w.Field.Classes == nil) ||
		(m.Field.Features == nil) != (w.Field.Features == nil) ||
		!named && (!slices.Equal(m.Field.Shape, w.Field.Shape) || m.Field.Width != w.Field.Width):
		if w.Name == Lone && len(c.records.Levels) == 1 && c.records.File == "" { // the file itself is what its user means
			return fmt.Errorf("%s is %s, and %s is %s: they are arrays and no groups that are alike; leave the declaration out "+
				"(--records), and each row of the arrays is a record", first, w.describe(), u.Name(), m.describe())
		}
		return fmt.Errorf("%s/%s is %s, and %s/%s is %s, so they are not one field; %s", first, w.Name,
			w.describe(), u.Name(), w.Name, m.describe(), c.without(w.Name))
	case m.Field.Meaning != w.Field.Meaning:
		return fmt.Errorf("%s/%s is in %s, and %s/%s in %s, so their numbers are not alike; %s", first, w.Name,
			w.Field.Meaning, u.Name(), w.Name, m.Field.Meaning, c.without(w.Name))
	}
	return nil
}

// additional returns an error if a unit has a member that would be a field, and that the first unit does not have.
func (c *Columns) additional(u Unit, members []Member) error {
	if len(c.selected) > 0 {
		return nil
	}
	for i := range members {
		m := &members[i]
		if !m.Optional && (m.Rows >= 0 || !c.records.Rows) && !c.isAcross(m) && !slices.Contains(c.known, m.Name) {
			return fmt.Errorf("%s has %s, which %s does not have; %s", u.Name(), m.Name, c.units[0].Name(), c.without())
		}
	}
	return nil
}

// hasNames reports whether columns or classes of the member have names, which are compared between units.
func (w wanted) hasNames() bool { return w.Field.Features != nil || w.Field.Classes != nil }

func (m *Member) describe() string {
	text := m.Field.Spec.String()
	if m.Rows >= 0 {
		text = fmt.Sprintf("%d rows of %s", m.Rows, text)
	}
	return text
}

// without returns the advice to leave members out, or to correct them if there are no others.
func (c *Columns) without(names ...string) string {
	if !slices.ContainsFunc(c.members, func(w wanted) bool { return !slices.Contains(names, w.Name) }) {
		return "correct it, as there is no other array"
	}
	return "leave it out: " + c.others(names...)
}

// others returns the --fields flag that selects all members but the given ones. Columns that the user selected besides
// members stay.
func (c *Columns) others(names ...string) string {
	var words []string
	if len(c.selected) == 0 {
		for _, w := range c.members {
			if !slices.Contains(names, w.Name) {
				words = append(words, w.as.String())
			}
		}
		if c.isSequence() {
			words = append(words, Episode, Step)
		}
	}
	for at, i := 0, 0; i < len(c.selected); i++ {
		member := !c.isComputed(c.selected[i].Column)
		if !member || !slices.Contains(names, c.members[at].Name) {
			words = append(words, c.selected[i].String())
		}
		if member {
			at++
		}
	}
	return shell.Command("--fields", strings.Join(words, ","))
}

// lengthsError returns the error for a unit whose arrays differ in length, with the flags to type.
func (c *Columns) lengthsError(u Unit, members map[string]*Member) error {
	count := make(map[int64]int)
	for _, w := range c.members {
		if m := members[w.Name]; m.Rows >= 0 {
			count[m.Rows]++
		}
	}
	usual := int64(-1) // the length of most members; if several are as common, the longest
	for n, members := range count {
		if usual < 0 || members > count[usual] || members == count[usual] && n > usual {
			usual = n
		}
	}
	var odd, said []string
	near := true // as where an action follows each observation but the last
	for _, w := range c.members {
		if m := members[w.Name]; m.Rows >= 0 && m.Rows != usual {
			near = near && m.Rows-usual <= 2 && usual-m.Rows <= 2
			odd = append(odd, w.Name)
			said = append(said, fmt.Sprintf("%s has %d", w.Name, m.Rows))
		}
	}
	same := c.members[slices.IndexFunc(c.members, func(w wanted) bool { return members[w.Name].Rows == usual })].Name
	advice := []string{"take the first rows of each: --align start; or the last: --align end",
		"leave arrays out: " + c.others(odd...)}
	if !near {
		slices.Reverse(advice)
	}
	return fmt.Errorf("in %s, %s has %d rows and %s, so row i of one need not belong to row i of the other; %s", u.Name(), same,
		usual, source.Enumerate(said, 4), strings.Join(advice, "; or "))
}

// isSequence reports whether units are sequences of rows, and not splits or collections of named rows. Only then
// Episode and Step make sense.
func (c *Columns) isSequence() bool {
	_, named := c.units[0].(Named)
	return c.records.Rows && len(c.splits.Names) < len(c.units) && !named
}

// build makes the columns, in the order of the selection.
func (c *Columns) build(selection []column.Selection) error {
	if len(selection) == 0 {
		for i := range c.members {
			if err := c.addMember(i); err != nil {
				return err
			}
		}
		for _, name := range []string{Episode, Step} {
			if c.isSequence() && !slices.ContainsFunc(c.List, func(o array.Column) bool { return o.Field.Name == name }) {
				c.addNumber(name, name)
			}
		}
		array.FindImages(c.List)
		return nil
	}
	at := 0
	for _, w := range selection {
		var err error
		switch {
		case !c.isComputed(w.Column):
			err = c.addMember(at)
			at++
		case w.Column == Episode || w.Column == Step:
			c.addNumber(cmp.Or(w.Field, w.Column), w.Column)
		default:
			err = c.addAttribute(w)
		}
		if err != nil {
			return err
		}
	}
	array.FindImages(c.List)
	return nil
}

// column returns a column over the records of all units.
func (c *Columns) column(field source.Field, at func(i int64, buf []byte) ([]byte, error)) array.Column {
	count := c.starts[len(c.units)]
	return array.Column{Field: field, Count: count, At: at, Open: func() (array.Cursor, error) {
		return array.CursorAt(at, count), nil
	}}
}

// addMember adds the column of member m. How a value is read depends on whether rows are records, and on Align.
func (c *Columns) addMember(m int) error {
	w := &c.members[m]
	field := w.Field
	field.Name, field.Origin = w.as.FieldName(), w.Name
	if !c.records.Rows || w.Rows < 0 {
		field.Dims = nil
	}
	var read func(o *opened, k int, in int64, buf []byte) ([]byte, error)
	switch {
	case w.Rows < 0 || !c.records.Rows && field.Ragged && w.fixed == 1:
		read = func(o *opened, _ int, _ int64, buf []byte) ([]byte, error) { return o.columns[m].At(0, buf) }
	case c.records.Rows && c.records.Align == AlignEnd:
		read = func(o *opened, k int, in int64, buf []byte) ([]byte, error) {
			return o.columns[m].At(in+o.columns[m].Count-(c.starts[k+1]-c.starts[k]), buf)
		}
	case c.records.Rows:
		read = func(o *opened, _ int, in int64, buf []byte) ([]byte, error) { return o.columns[m].At(in, buf) }
	case w.photo:
		shown := source.ContentField(field.Name, tensor.Images)
		shown.Origin, field = field.Origin, shown
		read = func(o *opened, _ int, _ int64, buf []byte) ([]byte, error) {
			files := array.Files{Record: buf}
			add := files.AddPadded
			if w.Field.Ragged {
				add = files.Add
			}
			err := o.columns[m].Each(add)
			return files.Record, err
		}
	case field.Ragged:
		return fmt.Errorf("%s: several values of any length cannot become one field of a record; take rows as records: %s, "+
			"or %s", w.Name, shell.Command("--records", c.records.String()+rows), c.without(w.Name))
	case w.fixed == 0:
		return fmt.Errorf("%s has no rows in any unit; %s", w.Name, c.without(w.Name))
	default:
		// Units of one length make records of a fixed size.
		if field.Ragged = w.fixed < 0; w.fixed >= 0 {
			field.Shape = append(tensor.Shape{int(w.fixed)}, field.Shape...)
			if w.Field.Dims != nil {
				field.Dims = append([]string{""}, w.Field.Dims...)
			}
		}
		read = func(o *opened, _ int, _ int64, buf []byte) ([]byte, error) { return o.columns[m].All(buf) }
	}
	if w.isJoined() {
		own := read
		read = func(o *opened, k int, in int64, buf []byte) ([]byte, error) {
			from := len(buf)
			buf, err := own(o, k, in, buf)
			if err != nil {
				return buf, err
			}
			return w.joined(k, buf, from)
		}
	}
	if err := field.Validate(); err != nil {
		return fmt.Errorf("%s: %w", w.Name, err)
	}
	one := c.column(field, func(i int64, buf []byte) ([]byte, error) {
		k, in := c.place(i)
		err := c.use(k, func(o *opened) (err error) {
			buf, err = read(o, k, in, buf)
			return err
		})
		return buf, err
	})
	if c.records.Rows && w.Rows >= 0 && !field.Ragged && !w.photo && !w.isJoined() {
		one.Rows = func(a, b int64, dst []byte) error { return c.readRows(m, a, b, dst) }
	}
	c.List = append(c.List, one)
	return nil
}

// use calls f with unit k, which is open until f returns.
func (c *Columns) use(k int, f func(o *opened) error) error {
	o, err := c.pool.take(k)
	if err != nil {
		return err
	}
	return errors.Join(within(c.units[k], f(o)), c.pool.giveBack(o))
}

// readRows fills dst with the values of member m in records [a, b), unit by unit.
func (c *Columns) readRows(m int, a, b int64, dst []byte) error {
	size := len(dst) / int(b-a)
	for a < b {
		k, in := c.place(a)
		// Records up to the end of the unit.
		n := min(b, c.starts[k+1]) - a
		err := c.use(k, func(o *opened) error {
			from := &o.columns[m]
			if c.records.Align == AlignEnd {
				in += from.Count - (c.starts[k+1] - c.starts[k])
			}
			if from.Rows != nil {
				return from.Rows(in, in+n, dst[:int(n)*size])
			}
			for i := range n {
				value, err := from.At(in+i, nil)
				if err != nil {
					return err
				}
				copy(dst[int(i)*size:], value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		a, dst = a+n, dst[int(n)*size:]
	}
	return nil
}

// addNumber adds the column Episode or Step under a name. Its values follow from the position, and are not stored
// anywhere.
func (c *Columns) addNumber(name, which string) {
	field := source.NumberField(name, tensor.Int64)
	field.Origin, field.Derived = which, true
	field.Dims = layout.NamedAxes([]string{c.axis}, nil)
	number := func(i int64) uint64 {
		k, in := c.place(i)
		if which == Episode {
			in = int64(k)
		}
		return uint64(in)
	}
	one := c.column(field, func(i int64, buf []byte) ([]byte, error) {
		return binary.LittleEndian.AppendUint64(buf, number(i)), nil
	})
	one.Rows = func(a, b int64, dst []byte) error {
		for i := range b - a {
			binary.LittleEndian.PutUint64(dst[8*i:], number(a+i))
		}
		return nil
	}
	c.List = append(c.List, one)
}

// addAttribute adds a column with an attribute of each unit, repeated in each of the unit's records.
func (c *Columns) addAttribute(w column.Selection) error {
	name := strings.Replace(w.Column, "@", "", 1)
	var values [][]byte
	var field source.Field
	for k, u := range c.units {
		a, ok := u.Attribute(name)
		if !ok {
			return fmt.Errorf("--fields %s: %s has no attribute %q that is a number or a text", w, u.Name(),
				strings.Trim(name, "/"))
		}
		if k > 0 && (a.Field.DType != field.DType || a.Field.Ragged != field.Ragged) {
			return fmt.Errorf("--fields %s: it is %v in %s, and %v in %s", w, field.Spec, c.units[0].Name(), a.Field.Spec,
				u.Name())
		}
		field, values = a.Field, append(values, a.Value)
	}
	field.Name, field.Origin = cmp.Or(w.Field, layout.FieldName(strings.Trim(name, "/"))), w.Column
	c.List = append(c.List, c.column(field, func(i int64, buf []byte) ([]byte, error) {
		k, _ := c.place(i)
		return append(buf, values[k]...), nil
	}))
	return nil
}
