// Package column reads the cells of tables: it finds out the type of a column from its cells, and converts cells to the
// values of a field. It also reads --fields.
//
// A [Guess] takes the cells of a column one by one and says at the end which [Type] holds all of them: the narrowest of
// the types that no cell contradicts. Guesses of two parts of a file merge, so that workers can share a file. A Type
// then converts each [Cell] and refuses what it cannot hold exactly. A [Selection] is one entry of --fields: which
// column becomes a field, under which name, with which type. Formats with types of their own, such as Parquet, use
// Selection and Type as well.
package column

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Kind is the kind of values in the cells of a column of a table.
type Kind uint8

const (
	Numbers Kind = iota
	ImagePath
	ImagePaths // a JSON array of paths, or one path
	imageBase64
	label
	Text
)

// kindNames are the kinds that have a name in --fields.
var kindNames = map[string]Kind{"image": ImagePath, "images": ImagePaths, "base64": imageBase64, "label": label, "text": Text}

// Type is the type of a column of a table.
type Type struct {
	Kind    Kind
	DType   tensor.DType     // of numbers
	Shape   []int            // of numbers: shape of the value, or of one of its rows
	Ragged  bool             // numbers: any number of rows
	classes map[string]int64 // number of each class of a label; nil if the cells are numbers
	missing []byte           // the value of a cell that is missing, if noValue is nil
	noValue error
}

// ParseType reads image, images, base64, label, text, or DTYPE, DTYPE[4], DTYPE[2,3], DTYPE[*],
// DTYPE[*,4].
func ParseType(name string) (t Type, err error) {
	if kind, ok := kindNames[name]; ok {
		return Type{Kind: kind, DType: tensor.Int64}, nil
	}
	dtype, axes, isArray := strings.Cut(name, "[")
	if t.DType, err = tensor.ParseDType(dtype); err != nil {
		return t, fmt.Errorf("unknown type %q%s", name, suggest.Hint(name, typeNames()))
	}
	if !isArray {
		return t, nil
	}
	axes, closed := strings.CutSuffix(axes, "]")
	for i, axis := range strings.Split(axes, ",") {
		axis = strings.TrimSpace(axis)
		if i == 0 && axis == "*" {
			t.Ragged = true
			continue
		}
		n, err := strconv.Atoi(axis)
		if err != nil || n < 1 || !closed {
			return t, fmt.Errorf("type %q: axes are written as [4], [2,3], [*] or [*,4]", name)
		}
		t.Shape = append(t.Shape, n)
	}
	return t, source.NumberField("x", t.DType, t.Shape...).Spec.Validate()
}

// typeNames returns the names of the types that ParseType reads, without arrays.
func typeNames() []string {
	names := slices.Sorted(maps.Keys(kindNames))
	for d := tensor.Float64; d > tensor.Invalid; d-- {
		names = append(names, d.String())
	}
	return names
}

// String returns the text that ParseType reads.
func (t Type) String() string {
	for name, kind := range kindNames {
		if kind == t.Kind {
			return name
		}
	}
	var axes []string
	if t.Ragged {
		axes = append(axes, "*")
	}
	for _, n := range t.Shape {
		axes = append(axes, strconv.Itoa(n))
	}
	if axes == nil {
		return t.DType.String()
	}
	return t.DType.String() + "[" + strings.Join(axes, ",") + "]"
}

// FieldOf returns the field that a column of this type becomes.
func (t Type) FieldOf(name string) source.Field {
	switch t.Kind {
	case ImagePath, imageBase64:
		return source.ContentField(name, tensor.Image)
	case ImagePaths:
		return source.ContentField(name, tensor.Images)
	case Text:
		return source.ContentField(name, tensor.Text)
	case label:
		return source.LabelField(name, t.classNames())
	}
	if t.Ragged {
		return source.RaggedField(name, t.DType, t.Shape...)
	}
	return source.NumberField(name, t.DType, t.Shape...)
}

// classNames returns the names in the order of their numbers.
func (t Type) classNames() []string {
	if t.classes == nil {
		return nil
	}
	names := make([]string, len(t.classes))
	for name, i := range t.classes {
		names[i] = name
	}
	return names
}

// Fixed reports whether Append works without the classes of a label, and all values have the same size.
func (t *Type) Fixed(g *Guess) bool {
	return !t.Ragged && (t.Kind == Numbers || t.Kind == label && !g.notInt)
}

// Words reports whether values are texts, or names of classes.
func (t *Type) Words(g *Guess) bool { return t.Kind == Text || t.Kind == label && g.notInt }

// AppendClass appends the number of the class of that name.
func (t *Type) AppendClass(b, name []byte) ([]byte, error) {
	n, ok := t.classes[string(name)]
	if !ok {
		return b, unknownClass(string(name))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(n)), nil
}

// Same reports whether Append of both types gives the same values. Neither type may have classes.
func (t *Type) Same(o *Type) bool {
	return t.Kind == o.Kind && t.DType == o.DType && t.Ragged == o.Ragged && slices.Equal(t.Shape, o.Shape)
}

// HasClasses reports whether cells are names of classes.
func (t *Type) HasClasses() bool { return t.classes != nil }

// Put sets a field to the value of a cell. A path in the cell is relative to the folder dir.
func (t Type) Put(v *source.Values, field int, c Cell, dir source.File) error {
	if c.Missing() && (t.Kind == Text || t.Kind == ImagePaths || t.Ragged) {
		v.Make(field, 0)
		return nil
	}
	if c.Missing() {
		b, err := t.appendMissing(v.Buffer(field))
		v.Keep(field, b)
		return err
	}
	switch t.Kind {
	case ImagePath:
		return putFile(v, field, c.Text, dir)
	case ImagePaths:
		return PathField{At: field, Several: true}.put(v, []byte(c.Text), dir)
	case imageBase64:
		return putBase64(v, field, c.Text)
	case Text:
		v.Keep(field, append(v.Buffer(field), c.Text...))
		return nil
	case label:
		return t.putLabel(v, field, c.Text)
	}
	b, err := t.appendNumbers(v.Buffer(field), c.Text)
	v.Keep(field, b)
	return err
}

// Append appends the value of a cell that becomes a field of a fixed size.
func (t *Type) Append(b []byte, c Cell) ([]byte, error) {
	switch {
	case c.Missing():
		return t.appendMissing(b)
	case t.Kind == label:
		n, err := t.labelOf(c.Text)
		return binary.LittleEndian.AppendUint64(b, uint64(n)), err
	}
	return t.appendNumbers(b, c.Text)
}

// SetMissing sets the value of missing cells in a column that becomes the field: see Missing.
func (t *Type) SetMissing(what string, f source.Field) { t.missing, t.noValue = Missing(what, f) }

// appendMissing appends the value of a missing cell.
func (t *Type) appendMissing(b []byte) ([]byte, error) {
	if t.missing == nil {
		return b, cmp.Or(t.noValue, source.ErrMissing)
	}
	return append(b, t.missing...), nil
}

// AppendOne appends the number of a cell, as one number of an array.
func (t *Type) AppendOne(b []byte, c Cell) ([]byte, error) {
	word := Trimmed(c.Text)
	if c.Missing() || isAbsent(word) {
		return t.appendMissing(b)
	}
	return AppendNumber(b, word, t.DType)
}

// putBase64 decodes a cell of base64, with or without the head of a data: URL, which browsers and notebooks write
// before the data.
func putBase64(v *source.Values, field int, text string) error {
	if _, data, ok := strings.Cut(text, ";base64,"); ok {
		text = data
	}
	b, err := base64.StdEncoding.AppendDecode(v.Buffer(field), []byte(text))
	v.Keep(field, b)
	if err != nil {
		return source.ValueError("it is not base64: %w", err)
	}
	return nil
}

func (t Type) putLabel(v *source.Values, field int, text string) error {
	n, err := t.labelOf(text)
	if err == nil {
		source.PutInt(v, field, n)
	}
	return err
}

// labelOf returns the number of a class.
func (t Type) labelOf(text string) (int64, error) {
	if t.classes == nil {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			err = source.ValueError("label %q is not a whole number", source.Clip(text))
		}
		return n, err
	}
	i, ok := t.classes[text]
	if !ok {
		return 0, unknownClass(text)
	}
	return i, nil
}

func unknownClass(name string) error {
	return source.ValueError("label %q is none of the classes", source.Clip(name))
}

// appendNumbers appends the numbers of a cell, and checks that they have the type's shape. A flat list stands for any
// shape of as many numbers.
func (t *Type) appendNumbers(b []byte, text string) ([]byte, error) {
	if !t.Ragged && len(t.Shape) == 0 && !strings.HasPrefix(text, "[") {
		word := Trimmed(text)
		long, err := AppendNumber(b, word, t.DType)
		if err == nil {
			return long, nil
		}
		if isAbsent(word) {
			return t.appendMissing(b)
		}
		if word != "" && strings.IndexFunc(word, isBlank) < 0 {
			return b, source.ValueError("%w", err)
		}
	}
	l := numberList{rest: text}
	dims, b, err := l.numbers(b, t.DType)
	if err != nil {
		return b, source.ValueError("%w", err)
	}
	row := tensor.Shape(t.Shape).Elems()
	switch total := l.count; {
	case t.Ragged && (len(dims) <= 1 && total%row == 0 || len(dims) > 0 && slices.Equal(dims[1:], t.Shape) || total == 0):
	case !t.Ragged && (slices.Equal(dims, t.Shape) || len(dims) == 1 && total == row):
	default:
		return b, source.ValueError("numbers of shape %v where %v is expected", tensor.Shape(dims), t)
	}
	return b, nil
}

// AppendNumber appends one number, which the type must be able to hold.
func AppendNumber(b []byte, word string, d tensor.DType) ([]byte, error) {
	if d == tensor.Float32 || d == tensor.Float64 {
		if x, err := parseFloat(word, 8*d.Size()); err == nil {
			return d.AppendNearest(b, tensor.Float(x))
		}
	}
	b, err := d.AppendParsed(b, word)
	if err != nil {
		err = fmt.Errorf("%q is not a value of type %v", source.Clip(word), d)
	}
	return b, err
}

// MaxClasses limits the classes of a label. A column with more different words is text, whatever its name is.
const MaxClasses = 1 << 20

// SetClasses numbers the classes of a label in the order of their names, so that the numbers do not depend on the order
// of rows. Classes that are numbers already keep them.
func (t *Type) SetClasses(g *Guess, names map[string]bool) error {
	if t.Kind != label || !g.notInt {
		return nil
	}
	if len(names) > MaxClasses {
		return fmt.Errorf("more than %d classes; words that are not classes are of type text", MaxClasses)
	}
	t.classes = source.ClassNumbers(slices.Sorted(maps.Keys(names)))
	return nil
}

// ErrImages is the error for lists of images in a field that has one image for each record.
var ErrImages = errors.New("holds lists, and a field of type image has one image a record; write :images in place of :image")

// FilePath returns the path of the file that a cell names. A relative path starts at the folder of the table.
func FilePath(cell, dir string) string {
	path := filepath.FromSlash(cell)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// PathField is a field whose values are paths of images until their files are read.
type PathField struct {
	At      int  // position of the field
	Several bool // values are JSON arrays of paths
}

// paths returns the paths that a value names.
func (p PathField) paths(value []byte) (list []string, err error) {
	if p.Several {
		return pathList(value)
	}
	if len(value) == 0 {
		return nil, source.ErrNoImage
	}
	return []string{string(value)}, nil
}

// put sets the field to the content of the files.
func (p PathField) put(v *source.Values, value []byte, dir source.File) error {
	list, err := p.paths(value)
	if err != nil {
		return err
	}
	if p.Several {
		return putFiles(v, p.At, list, dir)
	}
	return putFile(v, p.At, list[0], dir)
}

// pathList reads a JSON array of paths, or one path. An empty value and null stand for no path.
func pathList(value []byte) (list []string, err error) {
	if len(value) == 0 {
		return nil, nil
	}
	if value[0] != '[' && string(value) != "null" {
		return []string{string(value)}, nil
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, source.ValueError("%s is no list of paths", source.Clip(string(value)))
	}
	if i := slices.Index(list, ""); i >= 0 {
		return nil, source.ValueError("image %d: null or an empty path in a list", i)
	}
	return list, nil
}

// ListPaths returns the paths of files that a cell of type image or images names.
func (t Type) ListPaths(c Cell, dir string) (list []string, is bool) {
	if t.Kind != ImagePath && t.Kind != ImagePaths {
		return nil, false
	}
	if !c.Missing() {
		list, _ = PathField{Several: t.Kind == ImagePaths}.paths([]byte(c.Text))
	}
	for i := range list {
		list[i] = FilePath(list[i], dir)
	}
	return list, true
}

// WithFiles returns the data of a row in the file of a table. Fields that are paths of images, relative to the folder
// of that file, have the contents of the images in it.
func WithFiles(data source.Data, paths []PathField, root *vfs.Root, file string) source.Data {
	if paths == nil {
		return data
	}
	return withFiles{data, paths, source.File{Root: root, Path: filepath.Dir(file)}}
}

type withFiles struct {
	source.Data
	fields []PathField
	dir    source.File
}

// Read implements source.Data.
func (w withFiles) Read(v *source.Values) error {
	if err := w.Data.Read(v); err != nil {
		return err
	}
	for _, p := range w.fields {
		if err := p.put(v, v.Get(p.At), w.dir); err != nil {
			return err
		}
	}
	return nil
}

// Files implements source.Naming.
func (w withFiles) Files(v *source.Values) (files []string, rest []byte, err error) {
	if err := w.Data.Read(v); err != nil {
		return nil, nil, err
	}
	for field := range v.Len() {
		at := slices.IndexFunc(w.fields, func(p PathField) bool { return p.At == field })
		if at < 0 {
			rest = fmt.Appendf(rest, "%q\n", v.Get(field))
			continue
		}
		list, err := w.fields[at].paths(v.Get(field))
		if err != nil {
			return nil, nil, err
		}
		for _, path := range list {
			files = append(files, FilePath(path, w.dir.Path))
		}
	}
	return files, rest, nil
}

// putFiles sets a field of content Images to the files with these paths. The size is checked after each file: a row may
// name any number of them.
func putFiles(v *source.Values, field int, paths []string, dir source.File) error {
	record := v.Buffer(field)
	var file []byte
	for i, path := range paths {
		var err error
		if file, err = readFile(path, dir, file); err != nil {
			return fmt.Errorf("image %d: %w", i, err)
		}
		if record = tensor.AppendImage(record, file); len(record) > source.MaxValue {
			return source.ValueError("its images have more than %d bytes", source.MaxValue)
		}
	}
	v.Keep(field, record)
	return nil
}

// putFile sets a field to the bytes of a file.
func putFile(v *source.Values, field int, path string, dir source.File) error {
	b, err := readFile(path, dir, v.Buffer(field))
	v.Keep(field, b)
	return err
}

// readFile returns the bytes of a file, in the memory of buf if they fit.
func readFile(path string, dir source.File, buf []byte) ([]byte, error) {
	if strings.Contains(path, "://") {
		return buf, source.ValueError("%q is a URL; download the files first", source.Clip(path))
	}
	given := filepath.FromSlash(path)
	path = FilePath(path, dir.Path)
	b, err := source.File{Root: dir.Root, Path: path}.Bytes(buf)
	if err == nil {
		return b, nil
	}
	err = fmt.Errorf("file %s: %w", filepath.ToSlash(path), err)
	if _, elsewhere := vfs.Stat(given); elsewhere == nil && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; paths are relative to the folder of the table, not to the working folder", err)
	}
	return b, err
}
