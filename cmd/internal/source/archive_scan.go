package source

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// archiveScan is what a pass over archives finds.
type archiveScan struct {
	wanted  []Wanted
	order   []string // extensions as they first come
	members map[string]*memberScan
	samples int64 // groups
	images  int64
	grouped bool            // some group has several members
	dirs    map[string]bool // that images lie in
	ignored Ignored
}

// memberScan is what is known of the members with one extension.
type memberScan struct {
	count   int64
	guess   guess
	classes map[string]bool
	arrays  *Field // of .npy members
	err     error  // why they make no field
	keys    map[string]*memberScan
}

func newArchiveScan(wanted []Wanted) *archiveScan {
	return &archiveScan{wanted: wanted, members: make(map[string]*memberScan), dirs: make(map[string]bool)}
}

// smallMembers are extensions whose content says what type they are of.
var smallMembers = []string{"cls", "cls2", "index", "inx", "id", "json", "npy"}

// wants reports whether the pass looks into members with that extension.
func (s *archiveScan) wants(ext string) bool {
	last := lastPart(ext)
	if slices.Contains(smallMembers, last) {
		return true
	}
	for _, w := range s.wanted {
		if w.Type != "" && w.Type != "image" && w.Type != "text" && w.Column == ext {
			return true
		}
	}
	return false
}

// add takes one more group into account.
func (s *archiveScan) add(g group) {
	s.samples++
	s.grouped = s.grouped || len(g.members) > 1
	for _, name := range g.ignored {
		s.ignored.add(name)
	}
	for _, m := range g.members {
		if claimsImage(m.name) {
			s.images++
			s.dirs[path.Dir(m.name)] = true
		}
		s.member(m.ext).add(m, s.wanted)
	}
}

func (i *Ignored) add(name string) {
	if i.Count == 0 {
		i.First = name
	}
	i.Count++
}

func (s *archiveScan) member(ext string) *memberScan {
	if s.members[ext] == nil {
		s.order = append(s.order, ext)
		s.members[ext] = &memberScan{classes: make(map[string]bool), keys: make(map[string]*memberScan)}
	}
	return s.members[ext]
}

func (s *memberScan) add(m member, wanted []Wanted) {
	s.count++
	switch last := lastPart(m.ext); {
	case m.data == nil:
	case last == "npy":
		s.addNPY(m.data)
	case last == "json":
		s.addJSON(m, wanted)
	default:
		s.addCell(cell{text: strings.TrimSpace(string(m.data))})
	}
}

func (s *memberScan) addCell(c cell) {
	s.guess.add(c)
	if !c.missing() && len(s.classes) <= maxClasses {
		s.classes[c.text] = true
	}
}

// addJSON looks at the keys that are wanted.
func (s *memberScan) addJSON(m member, wanted []Wanted) {
	keys := make(map[string]bool)
	for _, w := range wanted {
		if key, ok := strings.CutPrefix(w.Column, m.ext+"."); ok {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		return
	}
	_ = eachMember(m.data, "", 0, func(key string, c cell) { // what is no JSON will be a bad sample
		if !keys[key] {
			return
		}
		if s.keys[key] == nil {
			s.keys[key] = &memberScan{classes: make(map[string]bool)}
		}
		s.keys[key].addCell(c)
	})
}

// addNPY compares the type of an array with those before it: one shape makes a fixed field,
// several lengths of the first axis one of any number of rows.
func (s *memberScan) addNPY(data []byte) {
	h, err := readNPY(bytes.NewReader(data))
	if err != nil {
		return // it will be a bad sample
	}
	f, err := npyMemberField("x", h)
	if err != nil || s.err != nil {
		return
	}
	a := s.arrays
	switch {
	case a == nil:
		s.arrays = &f
	case a.DType == f.DType && slices.Equal(a.Shape, f.Shape):
	case a.DType == f.DType && a.Ragged && len(f.Shape) > 0 && slices.Equal(a.Shape, f.Shape[1:]):
	case a.DType == f.DType && !a.Ragged && len(a.Shape) > 0 && len(a.Shape) == len(f.Shape) && slices.Equal(a.Shape[1:], f.Shape[1:]):
		ragged := rows("x", a.DType, a.Shape[1:]...)
		s.arrays = &ragged
	default:
		s.err = fmt.Errorf("arrays of %v %v and of %v %v do not make one field", a.DType, a.Shape, f.DType, f.Shape)
	}
}

// decide makes fields of what a pass has found.
func (a *archive) decide(s *archiveScan, wanted []Wanted) error {
	a.info.Ignored = s.ignored
	if s.samples == 0 {
		return errors.New("holds no files")
	}
	if !s.grouped && s.images > 0 && len(wanted) == 0 {
		return a.decideFolders(s)
	}
	a.info.Unit, a.info.Count = "samples", s.samples
	if len(wanted) == 0 {
		wanted = s.all()
	}
	for _, w := range wanted {
		c, err := s.column(w)
		if err != nil {
			return err
		}
		c.field.Origin = "member ." + c.name
		a.columns = append(a.columns, c)
		a.info.Fields = append(a.info.Fields, c.field)
	}
	for _, ext := range s.order {
		if m := s.members[ext]; m.count < s.samples && !plainImage(ext) {
			a.info.Hints = append(a.info.Hints, fmt.Sprintf(
				"only %d of %d samples have a .%s; the members of a sample must follow each other, as tar --sort=name writes them", m.count, s.samples, ext))
		}
	}
	return nil
}

// all returns every extension as a column, those of plain images as one.
func (s *archiveScan) all() (list []Wanted) {
	image := false
	for _, ext := range s.order {
		if plainImage(ext) && image {
			continue
		}
		image = image || plainImage(ext)
		list = append(list, Wanted{Column: ext})
	}
	return list
}

// column returns the column that is wanted.
func (s *archiveScan) column(w Wanted) (memberColumn, error) {
	c := memberColumn{name: w.Column, ext: w.Column}
	m := s.members[w.Column]
	if ext, key, ok := strings.Cut(w.Column, ".json."); ok || strings.HasPrefix(w.Column, "json.") {
		if c.ext = ext + ".json"; !ok {
			c.ext, key = "json", strings.TrimPrefix(w.Column, "json.")
		}
		c.kind, c.key = jsonMember, key
		if j := s.members[c.ext]; j != nil {
			m = j.keys[key]
		}
	}
	if m == nil {
		return c, fmt.Errorf("--fields %s: no sample has a %q%s", w, w.Column, suggest.Hint(w.Column, s.order))
	}
	err := c.decide(m, w)
	if err != nil {
		return c, fmt.Errorf("members .%s: %w", w.Column, err)
	}
	return c, nil
}

// memberFields are the fields' names for extensions that have usual ones.
var memberFields = map[string]string{"cls": labelsField, "txt": "text"}

// decide finds kind, type and field of a column.
func (c *memberColumn) decide(m *memberScan, w Wanted) error {
	name := w.Field
	if name == "" {
		name = fieldName(memberFieldName(c.name))
	}
	last := lastPart(c.ext)
	switch {
	case c.kind == jsonMember, w.Type != "" && w.Type != "image" && w.Type != "text", last == "cls" && w.Type == "":
		if c.kind != jsonMember {
			c.kind = cellMember
		}
		return c.decideCell(m, w, name)
	case w.Type == "image", w.Type == "" && claimsImage("x."+c.ext):
		if plainImage(c.ext) {
			c.kind = imageMembers
		}
		c.typ = columnType{kind: imagePath}
	case w.Type == "text", last == "txt", last == "json":
		c.typ = columnType{kind: text}
	case last == "npy":
		c.kind = npyMember
		return c.decideNPY(m, name)
	default:
		c.typ = columnType{dtype: tensor.Uint8, ragged: true}
	}
	c.field = c.typ.field(name)
	return nil
}

func (c *memberColumn) decideCell(m *memberScan, w Wanted, name string) error {
	c.typ = m.guess.result(labelsField)
	if w.Type != "" {
		c.typ, _ = parseType(w.Type) // ParseFields has checked it
	} else if c.kind == jsonMember {
		c.typ = m.guess.result(c.key)
	}
	if c.typ.kind == imagePath {
		return errors.New("an archive holds images, not paths to them; use :text or :base64")
	}
	if err := c.typ.setClasses(&m.guess, m.classes); err != nil {
		return err
	}
	c.field = c.typ.field(name)
	return nil
}

func (c *memberColumn) decideNPY(m *memberScan, name string) error {
	switch {
	case m.err != nil:
		return m.err
	case m.arrays == nil:
		return errors.New("none is an array that can be read")
	}
	c.field = *m.arrays
	c.field.Name = name
	return c.field.Spec.Validate()
}

// memberFieldName returns the usual name for an extension: what stands before the kind of
// file, as in left.jpg, or a name for that kind.
func memberFieldName(ext string) string {
	if before, _, ok := cutLast(ext, "."); ok && !strings.HasPrefix(ext, "json.") {
		return before
	}
	switch {
	case plainImage(ext):
		return imagesField
	case memberFields[ext] != "":
		return memberFields[ext]
	}
	return lastPart(ext)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
