package source

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// typeKind is what the cells of a column of a table hold.
type typeKind uint8

const (
	numbers typeKind = iota
	imagePath
	imageBase64
	label
	text
)

// kindNames are the kinds that have a word of their own in --fields.
var kindNames = map[string]typeKind{"image": imagePath, "base64": imageBase64, "label": label, "text": text}

// columnType is the type of a column of a table.
type columnType struct {
	kind    typeKind
	dtype   tensor.DType   // of numbers
	shape   []int          // of numbers: of the value, or of a row of it
	ragged  bool           // numbers: any number of rows
	classes map[string]int // of a label; nil where the cells are the numbers
}

// parseType reads image, base64, label, text, or DTYPE, DTYPE[4], DTYPE[2,3], DTYPE[*],
// DTYPE[*,4].
func parseType(name string) (t columnType, err error) {
	if kind, ok := kindNames[name]; ok {
		return columnType{kind: kind, dtype: tensor.Int64}, nil
	}
	dtype, axes, isArray := strings.Cut(name, "[")
	if t.dtype, err = tensor.ParseDType(dtype); err != nil {
		return t, fmt.Errorf("unknown type %q%s", name, suggest.Hint(name, typeNames()))
	}
	if !isArray {
		return t, nil
	}
	axes, closed := strings.CutSuffix(axes, "]")
	for i, axis := range strings.Split(axes, ",") {
		axis = strings.TrimSpace(axis)
		if i == 0 && axis == "*" {
			t.ragged = true
			continue
		}
		n, err := strconv.Atoi(axis)
		if err != nil || n < 1 || !closed {
			return t, fmt.Errorf("type %q: axes are written as [4], [2,3], [*] or [*,4]", name)
		}
		t.shape = append(t.shape, n)
	}
	return t, array("x", t.dtype, t.shape...).Spec.Validate()
}

// typeNames returns the types that parseType reads, arrays aside.
func typeNames() []string {
	names := slices.Sorted(keys(kindNames))
	for d := tensor.Float64; d > tensor.Invalid; d-- {
		names = append(names, d.String())
	}
	return names
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// String writes the type as parseType reads it.
func (t columnType) String() string {
	for name, kind := range kindNames {
		if kind == t.kind {
			return name
		}
	}
	var axes []string
	if t.ragged {
		axes = append(axes, "*")
	}
	for _, n := range t.shape {
		axes = append(axes, strconv.Itoa(n))
	}
	if axes == nil {
		return t.dtype.String()
	}
	return t.dtype.String() + "[" + strings.Join(axes, ",") + "]"
}

// field returns the field that a column of this type becomes.
func (t columnType) field(name string) Field {
	switch t.kind {
	case imagePath, imageBase64:
		return content(name, store.Image)
	case text:
		return content(name, store.Text)
	case label:
		return classLabel(name, t.classNames())
	}
	if t.ragged {
		return rows(name, t.dtype, t.shape...)
	}
	return array(name, t.dtype, t.shape...)
}

// classNames returns the names in the order of their numbers.
func (t columnType) classNames() []string {
	if t.classes == nil {
		return nil
	}
	names := make([]string, len(t.classes))
	for name, i := range t.classes {
		names[i] = name
	}
	return names
}

// put makes the value of a cell that of a field; a path is relative to dir, and leads to a file in it.
func (t columnType) put(v *Values, field int, c cell, dir fence) error {
	if c.missing() && (t.kind == text || t.ragged) {
		v.Make(field, 0)
		return nil
	}
	if c.missing() {
		return fmt.Errorf("%w: it is empty", ErrValue)
	}
	switch t.kind {
	case imagePath:
		return putFile(v, field, c.text, dir)
	case imageBase64:
		return putBase64(v, field, c.text)
	case text:
		v.Keep(field, append(v.Buffer(field), c.text...))
		return nil
	case label:
		return t.putLabel(v, field, c.text)
	}
	b, err := t.appendNumbers(v.Buffer(field), c.text)
	v.Keep(field, b)
	return err
}

func putBase64(v *Values, field int, text string) error {
	if _, data, ok := strings.Cut(text, ";base64,"); ok {
		text = data
	}
	b, err := base64.StdEncoding.AppendDecode(v.Buffer(field), []byte(text))
	v.Keep(field, b)
	if err != nil {
		return fmt.Errorf("%w: it is not base64: %w", ErrValue, err)
	}
	return nil
}

func (t columnType) putLabel(v *Values, field int, text string) error {
	if t.classes == nil {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return fmt.Errorf("%w: label %q is not a whole number", ErrValue, clip(text))
		}
		putInt(v, field, n)
		return nil
	}
	i, ok := t.classes[text]
	if !ok {
		return fmt.Errorf("%w: label %q is none of the classes", ErrValue, clip(text))
	}
	putInt(v, field, int64(i))
	return nil
}

// appendNumbers appends the numbers of a cell, checking that their shape is the type's. A
// flat list stands for any shape of as many numbers.
func (t columnType) appendNumbers(b []byte, text string) ([]byte, error) {
	if !t.ragged && len(t.shape) == 0 && !strings.HasPrefix(text, "[") {
		if word := trimmed(text); strings.IndexFunc(word, isBlank) < 0 && word != "" {
			b, err := appendNumber(b, word, t.dtype)
			if err != nil {
				err = fmt.Errorf("%w: %w", ErrValue, err)
			}
			return b, err
		}
	}
	l := list{rest: text}
	dims, b, err := l.numbers(b, t.dtype)
	if err != nil {
		return b, fmt.Errorf("%w: %w", ErrValue, err)
	}
	row := tensor.Shape(t.shape).Elems()
	switch total := l.count; {
	case t.ragged && (len(dims) <= 1 && total%row == 0 || len(dims) > 0 && slices.Equal(dims[1:], t.shape) || total == 0):
	case !t.ragged && (slices.Equal(dims, t.shape) || len(dims) == 1 && total == row):
	default:
		return b, fmt.Errorf("%w: numbers of shape %v where %v is expected", ErrValue, tensor.Shape(dims), t)
	}
	return b, nil
}

// appendNumber appends one number, which must fit into the type.
func appendNumber(b []byte, word string, d tensor.DType) ([]byte, error) {
	if len(word) == 4 || len(word) == 5 {
		switch word {
		case "true", "True", "TRUE":
			word = "1"
		case "false", "False", "FALSE":
			word = "0"
		}
	}
	bits := d.Size() * 8
	if d.IsFloat() {
		x, err := strconv.ParseFloat(word, max(bits, 32))
		if err != nil {
			return b, fmt.Errorf("%q is no %v", clip(word), d)
		}
		return appendFloat(b, x, d), nil
	}
	var n uint64
	var err error
	switch d {
	case tensor.Bool:
		n, err = strconv.ParseUint(word, 10, 1)
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
		n, err = strconv.ParseUint(word, 10, bits)
	default:
		var i int64
		i, err = strconv.ParseInt(word, 10, bits)
		n = uint64(i)
	}
	if err != nil {
		return b, fmt.Errorf("%q is no %v", clip(word), d)
	}
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], n)
	return append(b, bytes[:d.Size()]...), nil
}

func appendFloat(b []byte, x float64, d tensor.DType) []byte {
	switch d {
	case tensor.Float16:
		return binary.LittleEndian.AppendUint16(b, uint16(tensor.HalfOf(float32(x))))
	case tensor.BFloat16:
		return binary.LittleEndian.AppendUint16(b, uint16(tensor.BrainOf(float32(x))))
	case tensor.Float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// clip shortens text for a message.
func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}
