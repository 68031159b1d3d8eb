package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// parquetColumn is a leaf of a Parquet schema as a field.
type parquetColumn struct {
	name    string // path without the segments that only make lists
	wanted  Wanted
	leaf    parquet.LeafColumn
	image   bool // the bytes of an image
	text    bool // the file says that the bytes are text
	dtype   tensor.DType
	classes []string
	words   map[string]int64 // the numbers of the classes, where the values are their names
	shape   []int            // that all lists have, nil if they differ
	inner   int              // length of the inner lists of a list of lists, once it is known
	field   Field
}

// newParquetColumn returns the column of a leaf; half says that its two bytes are a float16,
// which the library does not tell.
func newParquetColumn(leaf parquet.LeafColumn, path []string, half bool) *parquetColumn {
	c := &parquetColumn{leaf: leaf, name: parquetName(path)}
	t := leaf.Node.Type()
	if c.dtype = parquetDType(t); half {
		c.dtype = tensor.Float16
	}
	if l := t.LogicalType(); l != nil && t.Kind() == parquet.ByteArray {
		kind := l.String()
		c.text = kind == "STRING" || kind == "JSON" || kind == "ENUM"
	}
	return c
}

// parquetName joins the segments of a path, without those of lists: list.element,
// list.item, bag.array_element.
func parquetName(path []string) string {
	var parts []string
	for i, p := range path {
		if i > 0 && (p == "list" || p == "bag" || p == "element" || p == "item" || p == "array_element" || p == "array") {
			continue
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, ".")
}

// parquetDType returns the element type of numbers, Invalid for other things.
func parquetDType(t parquet.Type) tensor.DType {
	logical := ""
	if l := t.LogicalType(); l != nil {
		logical = l.String()
	}
	if d, ok := parquetInts[logical]; ok {
		return d
	}
	if logical != "" {
		return tensor.Invalid // a date, a decimal: numbers that mean something else
	}
	switch t.Kind() {
	case parquet.Boolean:
		return tensor.Bool
	case parquet.Int32:
		return tensor.Int32
	case parquet.Int64:
		return tensor.Int64
	case parquet.Float:
		return tensor.Float32
	case parquet.Double:
		return tensor.Float64
	}
	return tensor.Invalid
}

var parquetInts = map[string]tensor.DType{
	"INT(8,true)": tensor.Int8, "INT(16,true)": tensor.Int16, "INT(32,true)": tensor.Int32, "INT(64,true)": tensor.Int64,
	"INT(8,false)": tensor.Uint8, "INT(16,false)": tensor.Uint16, "INT(32,false)": tensor.Uint32, "INT(64,false)": tensor.Uint64,
}

// values returns the column's values of a row.
func (c *parquetColumn) values(row [][]parquet.Value) []parquet.Value {
	return row[c.leaf.ColumnIndex]
}

// look takes the values of one of the first rows into account.
func (c *parquetColumn) look(values []parquet.Value, isImage func([]byte) bool) {
	for _, v := range values {
		if v.IsNull() {
			continue
		}
		if c.isBytes() && !c.text && isImage != nil && c.leaf.MaxRepetitionLevel == 0 {
			b := v.ByteArray()
			c.image = c.image || isImage(b[:min(len(b), 16)])
		}
	}
	if c.leaf.MaxRepetitionLevel == 2 && c.inner == 0 {
		c.inner = innerLength(values)
	}
}

// isBytes reports whether a value is bytes of any number.
func (c *parquetColumn) isBytes() bool { return c.leaf.Node.Type().Kind() == parquet.ByteArray }

// fixedBytes returns how many bytes each value has, 0 if they are no plain bytes.
func (c *parquetColumn) fixedBytes() int {
	t := c.leaf.Node.Type()
	if l := t.LogicalType(); t.Kind() != parquet.FixedLenByteArray || c.dtype != tensor.Invalid || l != nil && l.String() != "UUID" {
		return 0
	}
	return t.Length()
}

// wordLabel reports whether texts are the names of classes: on request, or by the column's
// name, as in other tables.
func (c *parquetColumn) wordLabel() bool {
	return c.text && (c.wanted.Type == "label" || c.wanted.Type == "" && LabelName(c.name))
}

// setWords makes words the classes.
func (c *parquetColumn) setWords(words []string) {
	c.classes, c.words = words, make(map[string]int64, len(words))
	for i, w := range words {
		c.words[w] = int64(i)
	}
}

// innerLength returns the length of the first inner list, 0 if there is none.
func innerLength(values []parquet.Value) (n int) {
	for i, v := range values {
		if v.IsNull() || i > 0 && v.RepetitionLevel() < 2 {
			break
		}
		n++
	}
	return n
}

// decide finds the field.
func (c *parquetColumn) decide() error {
	w := c.wanted
	name := w.Field
	if name == "" {
		name = fieldName(c.name)
	}
	if c.image && w.Field == "" && name == "image" {
		name = imagesField
	}
	if len(c.classes) > 0 && w.Field == "" && name == "label" {
		name = labelsField
	}
	if err := c.force(w.Type); err != nil {
		return err
	}
	var err error
	if c.leaf.MaxRepetitionLevel == 0 {
		c.field, err = c.single(name)
	} else {
		c.field, err = c.several(name)
	}
	if err != nil {
		return err
	}
	c.field.Origin = "column " + c.name
	return c.field.Spec.Validate()
}

// single returns the field of a column with one value a row.
func (c *parquetColumn) single(name string) (Field, error) {
	switch {
	case c.words != nil:
		return classLabel(name, c.classes), nil
	case c.image:
		return content(name, store.Image), nil
	case c.text:
		return content(name, store.Text), nil
	case c.isBytes():
		return rows(name, tensor.Uint8), nil
	case c.fixedBytes() > 0:
		return array(name, tensor.Uint8, c.fixedBytes()), nil
	case c.dtype == tensor.Invalid:
		return Field{}, fmt.Errorf("values of type %v make no field", c.leaf.Node.Type())
	case len(c.classes) > 0 || c.wanted.Type == "label":
		return classLabel(name, c.classes), nil
	}
	return array(name, c.dtype), nil
}

// several returns the field of a column of lists.
func (c *parquetColumn) several(name string) (Field, error) {
	switch rank := c.leaf.MaxRepetitionLevel; {
	case c.dtype == tensor.Invalid:
		return Field{}, fmt.Errorf("lists of values of type %v make no field", c.leaf.Node.Type())
	case c.shape != nil:
		return array(name, c.dtype, c.shape...), nil
	case rank == 1:
		return rows(name, c.dtype), nil
	case rank == 2 && c.inner > 0:
		return rows(name, c.dtype, c.inner), nil
	}
	return Field{}, fmt.Errorf("lists of lists with nothing in the first %d rows, or deeper ones, make no field", looked)
}

// force takes a type of --fields over what was found.
func (c *parquetColumn) force(typ string) error {
	switch {
	case typ == "":
		return nil
	case typ == "image" && c.isBytes():
		c.image = true
		return nil
	case typ == "text" && c.isBytes():
		c.text, c.image = true, false
		return nil
	case typ == "label" && (c.words != nil || c.dtype != tensor.Invalid && !c.dtype.IsFloat()):
		return nil
	}
	t, err := parseType(typ)
	rank := c.leaf.MaxRepetitionLevel
	switch {
	case err != nil || t.kind != numbers || c.dtype == tensor.Invalid || rank == 0 && (t.ragged || t.shape != nil) || t.ragged && len(t.shape) != rank-1:
		return fmt.Errorf("is of type %v and cannot be read as %s", c.leaf.Node.Type(), typ)
	case t.dtype != c.dtype:
		return fmt.Errorf("holds %v, which :%s does not change; leave :%s out, and convert it with the transform Cast", c.dtype, typ, typ)
	case t.ragged && rank == 2:
		c.inner = t.shape[0]
	case !t.ragged && rank > 0:
		c.shape = t.shape
	}
	return nil
}

var errNull = fmt.Errorf("%w: it is null", ErrValue)

// value copies the value of a row.
func (c *parquetColumn) value(row [][]parquet.Value) ([]byte, error) {
	values := c.values(row)
	if c.leaf.MaxRepetitionLevel > 0 {
		return c.list(values)
	}
	if len(values) != 1 {
		return nil, errors.New("a row without exactly one value")
	}
	v := values[0]
	switch {
	case v.IsNull() && c.text:
		return nil, nil
	case v.IsNull():
		return nil, errNull
	case c.words != nil:
		return c.word(v.ByteArray())
	case c.isBytes(), c.fixedBytes() > 0:
		return append([]byte{}, v.ByteArray()...), nil
	case c.field.DType == tensor.Int64 && c.dtype != tensor.Int64: // a label
		return binary.LittleEndian.AppendUint64(nil, uint64(parquetInt(v, c.dtype))), nil
	}
	return appendParquet(nil, v, c.dtype), nil
}

// word returns the number of a class.
func (c *parquetColumn) word(name []byte) ([]byte, error) {
	n, ok := c.words[string(name)]
	if !ok {
		return nil, fmt.Errorf("%w: label %q is none of the classes", ErrValue, clip(string(name)))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
}

// list copies the elements of a list, which has the shape of the field.
func (c *parquetColumn) list(values []parquet.Value) (b []byte, err error) {
	if b, err = c.elements(values); err != nil || c.field.Ragged {
		return b, err
	}
	if n := len(b) / c.dtype.Size(); n != c.field.Shape.Elems() {
		return nil, fmt.Errorf("%w: a list of %d numbers where %v is expected", ErrValue, n, columnType{dtype: c.dtype, shape: c.shape})
	}
	return b, nil
}

// elements copies the numbers of a list, or of a list of lists of one length.
func (c *parquetColumn) elements(values []parquet.Value) (b []byte, err error) {
	run := 0 // elements of the present inner list
	for i, v := range values {
		if v.IsNull() {
			if c.leaf.Node.Optional() && v.DefinitionLevel() == c.leaf.MaxDefinitionLevel-1 {
				return nil, fmt.Errorf("%w: a null in a list", ErrValue)
			}
			if len(values) == 1 {
				return nil, nil
			}
			return nil, fmt.Errorf("%w: an empty list in a list", ErrValue)
		}
		if v.RepetitionLevel() < 2 && i > 0 && c.inner > 0 {
			if run != c.inner {
				break
			}
			run = 0
		}
		run++
		b = appendParquet(b, v, c.dtype)
	}
	if c.inner > 0 && (run != c.inner || len(values)%c.inner != 0) {
		return nil, fmt.Errorf("%w: inner lists of other lengths than %d", ErrValue, c.inner)
	}
	return b, nil
}

// parquetInt returns a whole number as Parquet stores it: of 8 and 16 bits in 32.
func parquetInt(v parquet.Value, d tensor.DType) int64 {
	switch {
	case d == tensor.Uint32:
		return int64(v.Uint32())
	case d.Size() == 8:
		return v.Int64()
	case d == tensor.Bool && v.Boolean():
		return 1
	case d == tensor.Bool:
		return 0
	}
	return int64(v.Int32())
}

// appendParquet appends a number.
func appendParquet(b []byte, v parquet.Value, d tensor.DType) []byte {
	switch d {
	case tensor.Float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v.Float()))
	case tensor.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Double()))
	case tensor.Float16:
		return append(b, v.ByteArray()[:2]...)
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(parquetInt(v, d)))
	return append(b, word[:d.Size()]...)
}
