// Package column reads the cells of tables: it finds the type of a column from its cells, and converts cells to the
// values of a field. It also reads --fields.
//
// A [Guess] takes the cells of a column one by one and returns at the end the [Type] that holds all of them: the
// narrowest of the types that no cell rules out. Cells only ever rule types out, so the result does not depend on
// their order, and the guesses of two parts of a file can be merged by goroutines that share it. A Type then
// converts each [Cell], and refuses values that it cannot hold exactly. A [Selection] is one entry of --fields:
// which column becomes a field, under which name, with which type. Formats with types of their own, such as
// Parquet, use Selection and Type as well.
//
// Most cells of large tables are plain numbers. For these, [TakePlain] and [Cells] parse eight digits at a time,
// without branches on their number, and round as strconv does; all other notations take the general way.
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

// Kind is the kind of values that a column has.
type Kind uint8

const (
	Numbers     Kind = iota // one number, or an array of numbers in one cell
	ImagePath               // path of an image file
	ImagePaths              // JSON array of such paths, or one path
	imageBase64             // image file in base64
	label                   // name of a class, or its number
	Text                    // UTF-8 text
)

// kindNames has the names of kinds in --fields.
var kindNames = map[string]Kind{"image": ImagePath, "images": ImagePaths, "base64": imageBase64, "label": label, "text": Text}

// Type is the type of a column of a table, with everything needed to convert its cells. The zero value with a DType
// is a column of single numbers.
type Type struct {
	Kind    Kind
	DType   tensor.DType     // of Numbers
	Shape   []int            // of Numbers: shape of the value, or of each row if Ragged
	Ragged  bool             // Numbers: a value has any number of rows
	classes map[string]int64 // of labels: number of each class; nil if the cells are numbers already
	missing []byte           // value that stands for a missing cell, if noValue is nil
	noValue error            // why there is no such value
}

// ParseType reads a type in the notation of --fields: image, images, base64, label, text, or DTYPE, DTYPE[4],
// DTYPE[2,3], DTYPE[*], DTYPE[*,4].
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

// typeNames returns the type names that ParseType reads, without arrays.
func typeNames() []string {
	names := slices.Sorted(maps.Keys(kindNames))
	for d := tensor.Float64; d > tensor.Invalid; d-- {
		names = append(names, d.String())
	}
	return names
}

// String returns the notation that ParseType reads.
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

// FieldOf returns the field with this name that a column of this type becomes.
//
//	image, base64        files of images
//	images               any number of images in a record
//	label                class numbers, int64
//	text                 UTF-8
//	DTYPE, DTYPE[2,3]    numbers, arrays
//	DTYPE[*], DTYPE[*,4] any number of rows
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

// classNames returns the class names in the order of their numbers, nil if the classes have no names.
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

// Fixed reports whether all values have the same size and Append needs no class names, so that values can be
// converted before all classes are known.
func (t *Type) Fixed(g *Guess) bool {
	return !t.Ragged && (t.Kind == Numbers || t.Kind == label && !g.notInt)
}

// Words reports whether values are texts or names of classes.
func (t *Type) Words(g *Guess) bool { return t.Kind == Text || t.Kind == label && g.notInt }

// AppendClass appends the number of the class with a name, as int64.
func (t *Type) AppendClass(b, name []byte) ([]byte, error) {
	n, ok := t.classes[string(name)]
	if !ok {
		return b, unknownClass(string(name))
	}
	return binary.LittleEndian.AppendUint64(b, uint64(n)), nil
}

// Same reports whether Append of both types gives the same values, so that values converted by a guess of the type
// can be kept. Neither type may have class names.
func (t *Type) Same(o *Type) bool {
	return t.Kind == o.Kind && t.DType == o.DType && t.Ragged == o.Ragged && slices.Equal(t.Shape, o.Shape)
}

// HasClasses reports whether cells are names of classes.
func (t *Type) HasClasses() bool { return t.classes != nil }

// Put sets a field to the value of a cell. A path in a cell is relative to the folder dir. Missing texts, lists of
// images and ragged arrays become empty; any other missing cell becomes the value of SetMissing or an error.
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

// Append appends the value of a cell of a type with a fixed size.
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

// SetMissing sets the value of missing cells for a column that becomes f. what is the option Missing; see
// [Missing].
func (t *Type) SetMissing(what string, f source.Field) { t.missing, t.noValue = Missing(what, f) }

// appendMissing appends the value that stands for a missing cell, or returns why the type has no such value.
func (t *Type) appendMissing(b []byte) ([]byte, error) {
	// SetMissing was not called, or there is no such value.
	if t.missing == nil {
		return b, cmp.Or(t.noValue, source.ErrMissing)
	}
	return append(b, t.missing...), nil
}

// AppendOne appends one number of an array that is divided over several cells.
func (t *Type) AppendOne(b []byte, c Cell) ([]byte, error) {
	word := Trimmed(c.Text)
	if c.Missing() || isAbsent(word) {
		return t.appendMissing(b)
	}
	return AppendNumber(b, word, t.DType)
}

// putBase64 decodes a cell of base64. The head of a data: URL, which browsers and notebooks write before the data,
// is skipped.
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

// labelOf returns the class number of a cell.
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

// appendNumbers appends the numbers of a cell, which must have the type's shape. A flat list may stand for any
// shape with as many numbers, as CSV cells are often flattened. Single numbers, which nearly all cells are, take a
// short way.
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
		// A single word cannot be a list either, so this error is the right one.
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

// AppendNumber appends one number as type d. Floats are rounded to the nearest value; a number that any other type
// cannot hold is an error.
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

// MaxClasses limits the classes of a label. More different words are texts, whatever the name of the column is.
const MaxClasses = 1 << 20

// SetClasses numbers the class names of a label in alphabetical order, so that the numbers do not depend on the
// order of rows. Labels that are numbers already keep them.
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

// PathField is a field whose value is a path of an image, or several, until the files are read.
type PathField struct {
	At      int  // position of the field
	Several bool // values are JSON arrays of paths
}

// paths returns the paths in a value.
func (p PathField) paths(value []byte) (list []string, err error) {
	if p.Several {
		return pathList(value)
	}
	if len(value) == 0 {
		return nil, source.ErrNoImage
	}
	return []string{string(value)}, nil
}

// put replaces the value of the field by the content of the files.
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

// pathList reads a JSON array of paths, or a single path. An empty value and null are an empty list.
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

// ListPaths returns the paths of the files that a cell names. is is false if the type has no paths.
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

// WithFiles returns data in which fields of image paths, relative to the folder of file, have the content of the
// image files. data is a row of the table in file.
func WithFiles(data source.Data, paths []PathField, root *vfs.Root, file string) source.Data {
	if paths == nil {
		return data
	}
	return withFiles{data, paths, source.File{Root: root, Path: filepath.Dir(file)}}
}

// withFiles is the Data of a row whose image files are read after the row.
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

// Files implements source.Naming. The values that are no paths are quoted, so that two different rows never have
// the same encoding.
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

// putFiles sets a field of content Images to the content of files. The size is checked after each file, as a row
// may name any number of files.
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

// putFile sets a field to the content of a file.
func putFile(v *source.Values, field int, path string, dir source.File) error {
	b, err := readFile(path, dir, v.Buffer(field))
	v.Keep(field, b)
	return err
}

// readFile returns the content of a file, in the memory of buf if it fits.
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
	// A common mistake: the path is right from the folder where preprocess was started.
	if _, elsewhere := vfs.Stat(given); elsewhere == nil && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; paths are relative to the folder of the table, not to the working folder", err)
	}
	return b, err
}
