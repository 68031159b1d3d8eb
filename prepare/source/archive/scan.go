package archive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/array"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// archiveScan collects the findings of a pass over the archives, from which decide makes columns.
type archiveScan struct {
	selection []column.Selection
	remake    string   // command that writes the archive anew with its members in order; for error messages
	order     []string // extensions in the order of their first members
	members   map[string]*memberScan
	samples   int64 // groups
	images    int64
	pair      [2]string       // two members of one sample, as an example; empty if every sample has one member
	several   bool            // some sample has several plain images
	gaps      bool            // some sample has image numbers that are not 0, 1, 2, ...
	keys      keySet          // keys of the samples so far
	dirs      map[string]bool // folders of the images
	ignored   source.Ignored
	others    source.Ignored // members that are not images
}

// memberScan has the findings about the members with one extension, or about one key of JSON members.
type memberScan struct {
	count   int64
	guess   column.Guess
	classes map[string]bool
	arrays  *source.Field // field of the .npy members so far
	err     error         // why the members cannot become one field
	keys    map[string]*memberScan
}

func newArchiveScan(kind string, selection []column.Selection) *archiveScan {
	return &archiveScan{selection: selection, remake: remakes[kind], members: make(map[string]*memberScan),
		dirs: make(map[string]bool)}
}

// smallMembers are the extensions whose content decides a type, so the first pass reads them. They are small;
// images are not read in it.
var smallMembers = []string{"cls", "cls2", "index", "inx", "id", "json", "npy"}

// wants reports whether the first pass reads members with an extension: known small members, and members that
// --fields gives a type other than image or text.
func (s *archiveScan) wants(ext string) bool {
	last := column.LastPart(ext)
	if slices.Contains(smallMembers, last) {
		return true
	}
	for _, w := range s.selection {
		if w.Type != "" && w.Type != "image" && w.Type != "text" && w.Column == ext {
			return true
		}
	}
	return false
}

// add adds a group to the scan. A group that cannot be a whole sample is an error.
func (s *archiveScan) add(g group) error {
	if err := s.check(g); err != nil {
		return fmt.Errorf("%s: sample %s %w", filepath.Base(g.file), g.key, err)
	}
	s.samples++
	for _, name := range g.ignored {
		s.ignored.Add(name)
	}
	for i, m := range g.numbered() {
		if at := imageNumber(m.ext); at != int64(i) {
			s.gaps = true
		}
	}
	plain := 0
	for _, m := range g.members {
		if source.IsImageName(m.name) {
			s.images++
			s.dirs[path.Dir(m.name)] = true
		} else {
			s.others.Add(m.name)
		}
		if plainImage(m.ext) {
			plain++
		}
		s.member(m.ext).add(m, s.selection)
	}
	s.several = s.several || plain > 1
	if s.pair[0] == "" && len(g.members) > 1 {
		s.pair = [2]string{g.members[0].name, g.members[1].name}
	}
	return nil
}

// check returns an error if a group is not exactly one sample: two members with one extension, or a second group
// with the same key. In both cases a member or a sample would silently be lost.
func (s *archiveScan) check(g group) error {
	names := make(map[string]string, len(g.members)) // by extension
	for _, m := range g.members {
		before, twice := names[m.ext]
		if !twice {
			names[m.ext] = m.name
			continue
		}
		if before != m.name {
			return fmt.Errorf("has two members with the extension .%s, %s and %s; rename one of them", m.ext, before, m.name)
		}
		return fmt.Errorf("has the member %s twice; unpack the archive, which keeps the last of them, and make it again: %s",
			m.name, s.remake)
	}
	switch s.keys.add(g) {
	case keyAgain:
		return fmt.Errorf("continues with %s after other samples, but the members of a sample must follow each other; "+
			"unpack the archive and make it again: %s",
			g.members[0].name, s.remake)
	case keyApart:
		return fmt.Errorf("has %s in another archive of the file than its other members; unpack both and make one: %s",
			g.members[0].name, s.remake)
	}
	return nil
}

// remakes has the commands that write an archive with its members in order.
var remakes = map[string]string{"tar": "tar --sort=name -cf NEW.tar -C FOLDER .",
	"zip": "(cd FOLDER && zip -r ../NEW.zip .)"}

// keySet holds the keys of the samples in one file, to notice keys that come again. It stores hashes, about 30
// bytes a key, as a file can have millions of long names. Two keys with the same 64-bit hash would count as one
// key, which is improbable enough; the seed is random, so an archive cannot be built for it.
type keySet struct {
	number int // position of the file; the set starts anew with each file
	seed   maphash.Seed
	found  map[uint64]keyPlace
	sets   []map[string]bool // distinct sets of extensions that samples have
	// numbers has the position in sets by the extensions, NUL-terminated and concatenated; text is the buffer of
	// such a key
	numbers map[string]int32
	text    []byte
}

// keyPlace is the archive within the file where a key was seen, and the number of the set of its extensions.
type keyPlace struct{ part, set int32 }

// keyState says whether a key was seen before.
type keyState uint8

const (
	keyNew   keyState = iota
	keyAgain          // in the same archive: its members do not follow each other
	keyApart          // in another archive of the file, with disjoint extensions: one sample is divided over two archives
)

// add adds the key of a group and returns whether it was there. A key in two archives of a file with a common
// extension is two samples of one name, which the prefix of the archive keeps apart.
func (k *keySet) add(g group) keyState {
	if k.found == nil || k.number != g.number {
		*k = keySet{number: g.number, seed: maphash.MakeSeed(), found: make(map[uint64]keyPlace),
			numbers: make(map[string]int32)}
	}
	h := maphash.String(k.seed, g.key)
	now := keyPlace{int32(g.part), k.setOf(g)}
	before, found := k.found[h]
	k.found[h] = now
	switch {
	case !found:
		return keyNew
	case before.part == now.part:
		return keyAgain
	case !k.common(now.set, before.set):
		return keyApart
	}
	return keyNew
}

// setOf returns the number of the set of a group's extensions. Sets are shared by samples, so that a key costs four
// bytes for it. After mostSets sets, every new set counts as set 0.
func (k *keySet) setOf(g group) int32 {
	k.text = k.text[:0]
	for _, m := range g.members {
		k.text = append(append(k.text, m.ext...), 0)
	}
	i, known := k.numbers[string(k.text)]
	if !known && len(k.sets) < mostSets {
		i = int32(len(k.sets))
		list := make(map[string]bool, len(g.members))
		for _, m := range g.members {
			list[m.ext] = true
		}
		k.sets, k.numbers[string(k.text)] = append(k.sets, list), i
	}
	return i
}

// common reports whether two sets share an extension.
func (k *keySet) common(a, b int32) bool {
	for ext := range k.sets[a] {
		if k.sets[b][ext] {
			return true
		}
	}
	return false
}

// mostSets limits the distinct sets of extensions, and so the memory of a keySet.
const mostSets = 1000

// member returns the scan of the members with an extension.
func (s *archiveScan) member(ext string) *memberScan {
	if s.members[ext] == nil {
		s.order = append(s.order, ext)
		s.members[ext] = &memberScan{classes: make(map[string]bool), keys: make(map[string]*memberScan)}
	}
	return s.members[ext]
}

// add considers a member for the type of its column. A member that cannot be read is not considered; its sample
// fails later, where it is read again.
func (s *memberScan) add(m member, selection []column.Selection) {
	s.count++
	m.data, _ = m.load() // one that cannot be read will be a bad sample
	switch last := column.LastPart(m.ext); {
	case m.data == nil:
	case last == "npy":
		s.addNPY(m.data)
	case last == "json":
		s.addJSON(m, selection)
	default:
		s.addCell(column.Cell{Text: strings.TrimSpace(string(m.data))})
	}
}

// addCell considers a text for the type and, up to column.MaxClasses words, for the classes of a column.
func (s *memberScan) addCell(c column.Cell) {
	s.guess.Add(c)
	if !c.Missing() && len(s.classes) <= column.MaxClasses {
		s.classes[c.Text] = true
	}
}

// addJSON considers the values under the keys that --fields selects. Other keys are not fields, so their types are
// not needed.
func (s *memberScan) addJSON(m member, selection []column.Selection) {
	keys := make(map[string]bool)
	for _, w := range selection {
		if key, ok := strings.CutPrefix(w.Column, m.ext+"."); ok {
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		return
	}
	_ = column.EachMember(m.data, "", 0, func(key string, c column.Cell) { // invalid JSON will be a bad sample
		if !keys[key] {
			return
		}
		if s.keys[key] == nil {
			s.keys[key] = &memberScan{classes: make(map[string]bool)}
		}
		s.keys[key].addCell(c)
	})
}

// addNPY compares an array with the arrays before. Equal shapes make a field of fixed size, and shapes that differ
// in the first axis only make a ragged field; other shapes are an error of the column.
func (s *memberScan) addNPY(data []byte) {
	h, err := array.ReadNPY(bytes.NewReader(data))
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
	case a.DType == f.DType && !a.Ragged && len(a.Shape) > 0 && len(a.Shape) == len(f.Shape) &&
		slices.Equal(a.Shape[1:], f.Shape[1:]):
		ragged := source.RaggedField("x", a.DType, a.Shape[1:]...)
		s.arrays = &ragged
	default:
		s.err = fmt.Errorf("arrays of %v %v and of %v %v do not make one field", a.DType, a.Shape, f.DType, f.Shape)
	}
}

// decide chooses the fields after the pass.
//
//	0001.jpg 0001.cls 0002.jpg 0002.cls   samples of two columns
//	0001.0.jpg 0001.1.jpg 0001.txt        samples with any number of images, and a text
//	cat/1.jpg dog/2.jpg                   images in class folders
//	train/cat/1.jpg val/cat/2.jpg         the same with splits
func (a *archive) decide(s *archiveScan, selection []column.Selection) error {
	a.info.Ignored = s.ignored
	if s.samples == 0 {
		return errors.New("holds no files")
	}
	if s.pair[0] == "" && s.images > 0 && len(selection) == 0 {
		return a.decideFolders(s)
	}
	a.info.Unit, a.info.Count = "samples", s.samples
	given := len(selection) > 0
	if !given {
		if err := s.dotted(); err != nil {
			return err
		}
		selection = s.all()
		a.info.Hints = append(a.info.Hints, s.imagesOnly()...)
	}
	var names []string
	byExtension := plainImages(selection) > 1
	for _, w := range selection {
		if byExtension && w.Field == "" && plainImage(w.Column) {
			w.Field = w.Column
		}
		c, err := s.column(w)
		if err != nil {
			return err
		}
		c.field.Origin = "member ." + c.name
		a.columns, names = append(a.columns, c), append(names, c.field.Name)
	}
	if err := column.Distinct(selection, names); err != nil {
		return err
	}
	if !given { // writers of WebDataset sort the members of a sample: cls comes before jpg
		source.SortImagesFirst(a.columns, func(c memberColumn) source.Field { return c.field })
	}
	for _, c := range a.columns {
		a.info.Fields = append(a.info.Fields, c.field)
	}
	for _, ext := range s.order {
		// Numbered images and alternatives of one image (jpg in some samples, png in others) are missing by design.
		if m := s.members[ext]; m.count < s.samples && imageNumber(ext) < 0 && (s.several || !plainImage(ext)) {
			a.info.Hints = append(a.info.Hints, fmt.Sprintf(
				"only %d of %d samples have a .%s; the members of a sample must follow each other, as tar --sort=name writes them",
				m.count, s.samples, ext))
		}
	}
	return nil
}

// dotted returns an error for keys that contain a number with a dot. WebDataset would read img_0.5.jpg as the
// member 5.jpg of the sample img_0, together with 7.jpg of img_0.7.jpg. Numbers that count from 0 in each sample,
// beside other members, are meant as the images of the sample, and are no error.
func (s *archiveScan) dotted() error {
	counted := !s.gaps && slices.ContainsFunc(s.order, func(ext string) bool { return imageNumber(ext) < 0 })
	for _, ext := range s.order {
		if counted && imageNumber(ext) >= 0 {
			continue
		}
		first, _, more := strings.Cut(ext, ".")
		if _, err := strconv.ParseUint(first, 10, 64); err == nil && more {
			return fmt.Errorf("a member's extension begins at the first dot, as in WebDataset, so .%s is one; replace the dots "+
				"in the keys of samples, and make the archive again: %s; or choose members with --fields; images of one sample "+
				"are numbered from 0: --fields images:images takes all", ext, s.remake)
		}
	}
	return nil
}

// imagesOnly returns a hint for an archive of images alone some of which share their name up to the first dot: they
// became one sample, which may not be meant.
func (s *archiveScan) imagesOnly() []string {
	if slices.ContainsFunc(s.order, func(ext string) bool { return !source.IsImageName("x." + ext) }) {
		return nil
	}
	return []string{fmt.Sprintf("files whose names agree up to the first dot are one sample, as in WebDataset: %s and "+
		"%s are; if each image is a sample, unpack the archive and give the folder as the source",
		s.pair[0], s.pair[1])}
}

// plainImages returns the number of selected columns that are plain images.
func plainImages(selection []column.Selection) (n int) {
	for _, w := range selection {
		if plainImage(w.Column) {
			n++
		}
	}
	return n
}

// all returns the default selection: a column for each extension. All extensions of plain images are one column
// (some samples have .jpg, others .png), unless a sample has several images.
func (s *archiveScan) all() (list []column.Selection) {
	image, images := false, false
	for _, ext := range s.order {
		if imageNumber(ext) >= 0 {
			if !images {
				list = append(list, column.Selection{Column: source.ImagesName, Type: tensor.Images})
			}
			images = true
			continue
		}
		if plainImage(ext) && image && !s.several {
			continue
		}
		image = image || plainImage(ext)
		list = append(list, column.Selection{Column: ext})
	}
	return list
}

// column returns the column for a selection, with its type.
func (s *archiveScan) column(w column.Selection) (memberColumn, error) {
	c := memberColumn{name: w.Column, ext: w.Column, exact: s.several}
	m := s.members[w.Column]
	if w.Type == tensor.Images && m == nil && slices.ContainsFunc(s.order, func(ext string) bool { return imageNumber(ext) >= 0 }) {
		c.kind, c.field = numberedMembers, source.ContentField(cmp.Or(w.Field, layout.FieldName(w.Column)), tensor.Images)
		return c, nil
	}
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

// memberFields has the field names for extensions that WebDataset's users know by another name.
var memberFields = map[string]string{"cls": source.LabelsName, "txt": "text"}

// decide chooses kind, type and field of a column. A type of --fields comes first, then the extension.
func (c *memberColumn) decide(m *memberScan, w column.Selection) error {
	name := w.Field
	if name == "" {
		name = layout.FieldName(memberFieldName(c.name))
	}
	if w.Content.Name == tensor.Boxes || w.Content.Name == tensor.Keypoints {
		w.Type = w.CellType()
	}
	last := column.LastPart(c.ext)
	switch {
	// .cls has a number or a word by convention. Types of --fields other than image and text are parsed from text,
	// too.
	case c.kind == jsonMember, w.Type != "" && w.Type != "image" && w.Type != "text", last == "cls" && w.Type == "":
		if c.kind != jsonMember {
			c.kind = cellMember
		}
		return c.decideCell(m, w, name)
	// IsImageName wants a file name: "x." stands for the key.
	case w.Type == "image", w.Type == "" && source.IsImageName("x."+c.ext):
		if plainImage(c.ext) && !c.exact {
			c.kind = imageMembers
		}
		c.typ = column.Type{Kind: column.ImagePath}
	case w.Type == "text", last == "txt", last == "json":
		c.typ = column.Type{Kind: column.Text}
	case last == "npy":
		c.kind = npyMember
		return c.decideNPY(m, name)
	default:
		c.typ = column.Type{DType: tensor.Uint8, Ragged: true}
	}
	c.field = c.typ.FieldOf(name)
	return nil
}

// decideCell chooses the type of a column of texts. Paths of images stay texts: an archive is read on its own, and
// the images would be outside of it.
func (c *memberColumn) decideCell(m *memberScan, w column.Selection, name string) error {
	c.typ = m.guess.Result(source.LabelsName)
	if w.Type != "" {
		c.typ, _ = column.ParseType(w.Type) // ParseFields has checked it
	} else if c.kind == jsonMember {
		c.typ = m.guess.Result(c.key)
	}
	if c.typ.Kind == column.ImagePaths && w.Type == "" {
		c.typ = column.Type{Kind: column.Text}
	}
	if c.typ.Kind == column.ImagePath || c.typ.Kind == column.ImagePaths {
		return errors.New("an archive holds images, not paths to them; use :text or :base64")
	}
	if err := c.typ.SetClasses(&m.guess, m.classes); err != nil {
		return err
	}
	c.field = c.typ.FieldOf(name)
	return nil
}

// decideNPY makes the field that addNPY found the field of the column.
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

// memberFieldName returns the default field name for an extension: the part before the file type, as left of
// left.jpg, or the usual name for the type.
func memberFieldName(ext string) string {
	if i := strings.LastIndexByte(ext, '.'); i >= 0 && !strings.HasPrefix(ext, "json.") {
		return ext[:i]
	}
	switch {
	case plainImage(ext):
		return source.ImagesName
	case memberFields[ext] != "":
		return memberFields[ext]
	}
	return column.LastPart(ext)
}
