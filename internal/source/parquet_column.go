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
	inner   int // length of the inner lists of a list of lists, once it is known
	field   Field
}

func newParquetColumn(leaf parquet.LeafColumn, path []string) *parquetColumn {
	c := &parquetColumn{leaf: leaf, name: parquetName(path)}
	t := leaf.Node.Type()
	c.dtype = parquetDType(t)
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
	if logical == "FLOAT16" {
		return tensor.Float16
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

func (c *parquetColumn) isBytes() bool { return c.leaf.Node.Type().Kind() == parquet.ByteArray }

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
	rank := c.leaf.MaxRepetitionLevel
	switch {
	case c.image && rank == 0:
		c.field = content(name, store.Image)
	case c.text && rank == 0:
		c.field = content(name, store.Text)
	case c.isBytes() && rank == 0:
		c.field = rows(name, tensor.Uint8)
	case c.dtype == tensor.Invalid:
		return fmt.Errorf("values of type %v make no field", c.leaf.Node.Type())
	case rank == 0 && (len(c.classes) > 0 || w.Type == "label"):
		c.field = classLabel(name, c.classes)
	case rank == 0:
		c.field = array(name, c.dtype)
	case rank == 1:
		c.field = rows(name, c.dtype)
	case rank == 2 && c.inner > 0:
		c.field = rows(name, c.dtype, c.inner)
	default:
		return fmt.Errorf("lists of lists with nothing in the first %d rows, or deeper ones, make no field", looked)
	}
	c.field.Origin = "column " + c.name
	return c.field.Spec.Validate()
}

// force takes a type of --fields over what was found.
func (c *parquetColumn) force(typ string) error {
	switch {
	case typ == "":
	case typ == "image" && c.isBytes():
		c.image = true
	case typ == "text" && c.isBytes():
		c.text, c.image = true, false
	case typ == "label" && c.dtype != tensor.Invalid && !c.dtype.IsFloat():
	default:
		return fmt.Errorf("is of type %v and cannot be read as %s", c.leaf.Node.Type(), typ)
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
	case c.isBytes():
		return append([]byte{}, v.ByteArray()...), nil
	case c.field.DType == tensor.Int64 && c.dtype != tensor.Int64: // a label
		return binary.LittleEndian.AppendUint64(nil, uint64(parquetInt(v, c.dtype))), nil
	}
	return appendParquet(nil, v, c.dtype), nil
}

// list copies the elements of a list, or of a list of lists of one length.
func (c *parquetColumn) list(values []parquet.Value) (b []byte, err error) {
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
