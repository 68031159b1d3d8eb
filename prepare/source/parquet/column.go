package parquet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/arrow"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// leafColumn is a leaf of the schema that becomes a field, or several leaves that become one array.
//
// Parquet stores lists and nulls as two small numbers with each value. The definition level says how many of the
// optional and repeated nodes in the path of the leaf are there: the highest one is a value, a lower one a null or
// an empty list. The repetition level says which repeated node the value continues: 0 begins a row, and in a list
// of lists 1 begins an inner list.
type leafColumn struct {
	name      string // path without the segments that only spell lists
	selection column.Selection
	parts     []*leafColumn // leaves of an array of several columns; leaf is then unset
	leaf      parquet.LeafColumn
	itemLevel int  // definition level of an item of a list; null and empty lists have a lower one
	image     bool // the bytes are an image file
	text      bool // the schema says that the bytes are text
	path      bool // the text is the path of an image
	scale     int  // digits after the point of a decimal; -1 for other types
	DType     tensor.DType
	classes   []string
	words     map[string]int64 // class numbers by name, if the values are names
	shape     []int            // shape of all lists; nil if they differ
	extension arrow.Extension  // what the Arrow schema in the file says
	odd       bool             // some list does not have the shape of the extension
	inner     int              // length of the inner lists of a list of lists; 0 until it is known
	field     source.Field
	missing   string // see source.Options.Missing
}

// newParquetColumn returns the column of a leaf. half says that its two bytes are a float16.
func newParquetColumn(leaf parquet.LeafColumn, path []string, half bool) *leafColumn {
	c := &leafColumn{leaf: leaf, name: parquetName(path), scale: -1}
	t := leaf.Node.Type()
	c.DType = parquetDType(t)
	switch l := t.LogicalType(); {
	case half:
		c.DType = tensor.Float16
	case l != nil:
		if d, ok := l.Value.(*format.DecimalType); ok && d.Scale >= 0 && d.Scale <= maxScale {
			c.DType, c.scale = tensor.Float64, int(d.Scale)
		}
	}
	if l := t.LogicalType(); l != nil && t.Kind() == parquet.ByteArray {
		kind := l.String()
		c.text = kind == "STRING" || kind == "JSON" || kind == "ENUM"
	}
	return c
}

// parquetName joins the segments of a path, without the segments that only spell a list: list.element, list.item,
// bag.array_element.
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

// parquetDType returns the type of a leaf of numbers or times, Invalid for other leaves. Times stay the integers
// that are stored; their unit is in the field's origin.
func parquetDType(t parquet.Type) tensor.DType {
	logical := ""
	if l := t.LogicalType(); l != nil {
		logical = l.String()
	}
	if d, ok := parquetInts[logical]; ok {
		return d
	}
	// TIME and TIMESTAMP have units, which timeNote tells; the numbers stay as they are.
	since := logical == "DATE" || strings.HasPrefix(logical, "TIME") // times are the numbers that are stored
	if logical != "" && !since {
		return tensor.Invalid
	}
	switch t.Kind() {
	case parquet.Boolean:
		return tensor.Bool
	case parquet.Int32:
		return tensor.Int32
	case parquet.Int64, parquet.Int96: // a time as Spark and Hive write it, see sinceEpoch
		return tensor.Int64
	case parquet.Float:
		return tensor.Float32
	case parquet.Double:
		return tensor.Float64
	}
	return tensor.Invalid
}

// parquetInts has the integer types by the name of their logical type.
var parquetInts = map[string]tensor.DType{
	"INT(8,true)": tensor.Int8, "INT(16,true)": tensor.Int16, "INT(32,true)": tensor.Int32, "INT(64,true)": tensor.Int64,
	"INT(8,false)": tensor.Uint8, "INT(16,false)": tensor.Uint16, "INT(32,false)": tensor.Uint32,
	"INT(64,false)": tensor.Uint64,
}

// values returns the values of the leaf in a row.
func (c *leafColumn) values(row [][]parquet.Value) []parquet.Value {
	return row[c.leaf.ColumnIndex]
}

// looked is the number of rows that look reads.
const looked = 100

// look examines the values of one of the first rows: whether bytes are images, and how long inner lists are.
func (c *leafColumn) look(values []parquet.Value, isImage func([]byte) bool) {
	for _, v := range values {
		if v.IsNull() {
			continue
		}
		if c.isBytes() && !c.text && isImage != nil && c.leaf.MaxRepetitionLevel < 2 {
			b := v.ByteArray()
			c.image = c.image || isImage(b[:min(len(b), 16)])
		}
	}
	if c.leaf.MaxRepetitionLevel == 2 && c.inner == 0 {
		c.inner = innerLength(values)
	}
}

// unclear reports whether only values tell what the column is.
func (c *leafColumn) unclear() bool {
	return c.parts == nil && (c.isBytes() && !c.text && !c.image || c.leaf.MaxRepetitionLevel == 2)
}

// isBytes reports whether values are bytes of any length.
func (c *leafColumn) isBytes() bool {
	return c.leaf.Node.Type().Kind() == parquet.ByteArray && c.scale < 0
}

// fixedBytes returns the length of values that are bytes of a fixed length; 0 for any other column.
func (c *leafColumn) fixedBytes() int {
	t := c.leaf.Node.Type()
	if l := t.LogicalType(); t.Kind() != parquet.FixedLenByteArray || c.DType != tensor.Invalid || l != nil &&
		l.String() != "UUID" {
		return 0
	}
	return t.Length()
}

// wordLabel reports whether texts are class names: by --fields, or by the name of the column as in other tables.
func (c *leafColumn) wordLabel() bool {
	return c.text && (c.selection.Type == "label" || c.selection.Type == "" && column.LabelName(c.name))
}

// innerLength returns the length of the first inner list in a row, 0 if the row has no inner list.
func innerLength(values []parquet.Value) (n int) {
	for i, v := range values {
		if v.IsNull() || i > 0 && v.RepetitionLevel() < 2 {
			break
		}
		n++
	}
	return n
}

// decide chooses the field of the column.
func (c *leafColumn) decide() error {
	w := c.selection
	name := w.Field
	if name == "" {
		name = layout.FieldName(c.name)
	}
	// The hub calls the column image, and all sources here call the field images.
	if c.image && w.Field == "" && name == "image" {
		name = source.ImagesName
	}
	if len(c.classes) > 0 && w.Field == "" && name == "label" {
		name = source.LabelsName
	}
	if c.parts != nil {
		c.field = source.NumberField(name, c.DType, c.shape...)
		c.field.Origin = fmt.Sprintf("columns %s (%d)", c.name, len(c.parts))
		return c.field.Spec.Validate()
	}
	typ := w.Type
	// A mask that is text is the path of its file.
	if w.Content.Name == tensor.Mask && c.text {
		typ = "image"
	}
	if c.extension.Refused != nil {
		return c.extension.Refused
	}
	if err := c.force(typ); err != nil {
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
	c.field.Column, c.field.Origin = c.name, "column "+c.name+timeNote(c.leaf.Node.Type())
	return c.field.Spec.Validate()
}

// timeNote describes the unit of times for the origin of a field; "" for other types.
func timeNote(t parquet.Type) string {
	if t.Kind() == parquet.Int96 {
		return " (nanoseconds since 1970-01-01)"
	}
	l := t.LogicalType()
	if l == nil {
		return ""
	}
	switch v := l.Value.(type) {
	case *format.DateType:
		return " (days since 1970-01-01)"
	case *format.TimestampType:
		return fmt.Sprintf(" (%s since 1970-01-01)", timeUnit(v.Unit))
	case *format.TimeType:
		return fmt.Sprintf(" (%s since midnight)", timeUnit(v.Unit))
	}
	return ""
}

func timeUnit(u format.TimeUnit) string {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return "milliseconds"
	case *format.MicroSeconds:
		return "microseconds"
	}
	return "nanoseconds"
}

// single returns the field of a column with one value in each row.
//
//	names of classes        class numbers, with these classes
//	images, paths of images files of images, read by the worker if they are paths
//	text                    UTF-8
//	bytes                   any number of uint8, or a fixed number if the type has one
//	numbers                 numbers, or class numbers if the hub names classes
func (c *leafColumn) single(name string) (source.Field, error) {
	switch {
	case c.words != nil:
		return source.LabelField(name, c.classes), nil
	case (c.image || c.path) && c.selection.Type == "images":
		return source.ContentField(name, tensor.Images), nil
	case c.image, c.path:
		return source.ContentField(name, tensor.Image), nil
	case c.text:
		return source.ContentField(name, tensor.Text), nil
	case c.isBytes():
		return source.RaggedField(name, tensor.Uint8), nil
	case c.fixedBytes() > 0:
		return source.NumberField(name, tensor.Uint8, c.fixedBytes()), nil
	case c.DType == tensor.Invalid:
		return source.Field{}, fmt.Errorf("values of type %v cannot become a field", c.leaf.Node.Type())
	case len(c.classes) > 0 || c.selection.Type == "label":
		return source.LabelField(name, c.classes), nil
	}
	return source.NumberField(name, c.DType), nil
}

// several returns the field of a column with a list in each row.
//
//	images, paths of images any number of images
//	text                    one text: the JSON array
//	lists of one shape      an array of that shape
//	lists                   any number of numbers
//	lists of lists          rows of the length that the inner lists have in the first row
func (c *leafColumn) several(name string) (source.Field, error) {
	switch rank := c.leaf.MaxRepetitionLevel; {
	case (c.image || c.path) && rank == 1:
		return source.ContentField(name, tensor.Images), nil
	case c.text && rank == 1:
		return source.ContentField(name, tensor.Text), nil // their JSON array
	case c.DType == tensor.Invalid:
		return source.Field{}, fmt.Errorf("lists of values of type %v cannot become a field", c.leaf.Node.Type())
	case c.shape != nil:
		return source.NumberField(name, c.DType, c.shape...), nil
	case rank == 1:
		field := source.RaggedField(name, c.DType)
		if c.DType == tensor.Int64 {
			field.Classes = c.classes
		}
		return field, nil
	case rank == 2 && c.inner > 0:
		return source.RaggedField(name, c.DType, c.inner), nil
	}
	return source.Field{}, fmt.Errorf("lists nested more than two deep, or empty in the first %d rows, are not supported",
		looked)
}

// force applies a type of --fields. It is an error if values would have to be converted: the transform Cast
// converts values.
func (c *leafColumn) force(typ string) error {
	switch {
	case typ == "":
		return nil
	case typ == "image" && c.isBytes() && c.leaf.MaxRepetitionLevel > 0:
		return column.ErrImages
	case typ == "image" && c.leaf.MaxRepetitionLevel == 0 || typ == "images" && c.leaf.MaxRepetitionLevel < 2:
		if !c.isBytes() {
			break
		}
		c.path, c.image = c.text, !c.text
		return nil
	case typ == "text" && c.isBytes():
		c.text, c.image = true, false
		return nil
	case typ == "label" && (c.words != nil || c.DType != tensor.Invalid && !c.DType.IsFloat()):
		return nil
	}
	t, err := column.ParseType(typ)
	rank := c.leaf.MaxRepetitionLevel
	switch {
	case err != nil || t.Kind != column.Numbers || c.DType == tensor.Invalid || rank == 0 &&
		(t.Ragged || t.Shape != nil) || t.Ragged && len(t.Shape) != rank-1:
		return fmt.Errorf("is of type %v and cannot be read as %s", c.leaf.Node.Type(), typ)
	case t.DType != c.DType:
		return fmt.Errorf("holds %v, which :%s cannot convert; leave :%s out, and convert it with the transform Cast",
			c.DType, typ, typ)
	case t.Ragged && rank == 2:
		c.inner = t.Shape[0]
	case !t.Ragged && rank > 0:
		c.shape = t.Shape
	}
	return nil
}

// value copies the value of the column in a row.
func (c *leafColumn) value(row [][]parquet.Value) ([]byte, error) {
	if c.parts != nil {
		return c.concat(row)
	}
	values := c.values(row)
	switch {
	case c.field.Content == tensor.Images && c.image:
		return c.images(values)
	case c.leaf.MaxRepetitionLevel > 0 && c.text:
		return c.texts(values)
	case c.leaf.MaxRepetitionLevel > 0:
		return c.list(values)
	}
	// A column without lists has exactly one value for each row, even if it is null.
	if len(values) != 1 {
		return nil, errors.New("a row without exactly one value")
	}
	return c.number(values[0])
}

// leaves returns the leaves that the column is made of.
func (c *leafColumn) leaves() []*leafColumn {
	if c.parts != nil {
		return c.parts
	}
	return []*leafColumn{c}
}

// extend appends the value of one of the leaves in a row to the value of the column.
func (c *leafColumn) extend(value []byte, leaf *leafColumn, row [][]parquet.Value) ([]byte, error) {
	v, err := leaf.value(row)
	if err != nil {
		return v, fmt.Errorf("column %s: %w", leaf.name, err)
	}
	if c.parts == nil {
		return v, nil
	}
	return append(value, v...), nil
}

// number copies the value of a column with one value in each row.
func (c *leafColumn) number(v parquet.Value) ([]byte, error) {
	switch {
	// A null text is empty, as in the other sources.
	case v.IsNull() && c.text && c.words == nil:
		return nil, nil
	case v.IsNull():
		return column.Missing(c.missing, c.field)
	case c.words != nil:
		return c.word(v.ByteArray())
	case c.isBytes(), c.fixedBytes() > 0:
		return append([]byte{}, v.ByteArray()...), nil
	case c.field.DType == tensor.Int64 && c.DType != tensor.Int64: // a label
		return binary.LittleEndian.AppendUint64(nil, uint64(parquetInt(v, c.DType))), nil
	}
	return c.appendNumber(nil, v)
}

// texts returns a list of texts as a JSON array, which is how lists of texts are stored from all sources. A null
// list is empty.
func (c *leafColumn) texts(values []parquet.Value) ([]byte, error) {
	list := []string{}
	err := c.items(values, func(item []byte) error {
		if !utf8.Valid(item) {
			return source.ValueError("text that is not UTF-8")
		}
		list = append(list, string(item))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(list)
}

// images returns a list of image files as the value of a field of content Images. A null list is empty.
func (c *leafColumn) images(values []parquet.Value) (record []byte, err error) {
	err = c.items(values, func(item []byte) error {
		record = tensor.AppendImage(record, item)
		return nil
	})
	return record, err
}

// items calls do with each item of a list; a null list has no items, and a null item is an error.
func (c *leafColumn) items(values []parquet.Value, do func(item []byte) error) error {
	for _, v := range values {
		if v.IsNull() {
			if c.nullItem(v) {
				return source.ValueError("a null in a list")
			}
			continue
		}
		if err := do(v.ByteArray()); err != nil {
			return err
		}
	}
	return nil
}

// nullItem reports whether a null value is an item of a list, and not a null or empty list. Parquet stores a
// value for each of the three, with different definition levels.
func (c *leafColumn) nullItem(v parquet.Value) bool {
	return c.itemLevel > 0 && v.DefinitionLevel() >= c.itemLevel
}

// itemLevel returns the definition level of the innermost repeated node of a path: how many optional and repeated
// nodes there are up to it.
func itemLevel(n parquet.Node, path []string) (level int) {
	now := 0
	for _, name := range path {
		at := slices.IndexFunc(n.Fields(), func(f parquet.Field) bool { return f.Name() == name })
		if n = n.Fields()[at]; !n.Required() {
			now++
		}
		if n.Repeated() {
			level = now
		}
	}
	return level
}

// maxScale is the largest scale of Arrow's widest decimals, of 256 bits.
const maxScale = 76

// appendNumber appends a number in the type of the column. Decimals become the nearest float64.
func (c *leafColumn) appendNumber(b []byte, v parquet.Value) ([]byte, error) {
	switch {
	case v.Kind() == parquet.Int96:
		n, err := sinceEpoch(v.Int96())
		return binary.LittleEndian.AppendUint64(b, uint64(n)), err
	case c.scale < 0:
		return appendParquet(b, v, c.DType), nil
	}
	var n *big.Int
	switch v.Kind() {
	case parquet.Int32:
		n = big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		n = big.NewInt(v.Int64())
	default:
		n = column.TwosComplement(v.ByteArray())
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(column.Decimal(n, c.scale))), nil
}

// sinceEpoch converts a time of type INT96, as Spark and Hive write it, to nanoseconds since 1970-01-01. INT96 has
// the nanoseconds within the day in the first 8 bytes and the Julian day number in the last 4. The result is equal
// to pyarrow's.
func sinceEpoch(t deprecated.Int96) (int64, error) {
	const day, epoch = int64(24 * time.Hour), 2440588
	ns, days := int64(t[1])<<32|int64(t[0]), int64(t[2])-epoch
	if ns < 0 || ns > day || days < math.MinInt64/day || days >= math.MaxInt64/day {
		return 0, source.ValueError("a time of type INT96 that nanoseconds since 1970 in 64 bits do not have: Julian day %d",
			t[2])
	}
	return days*day + ns, nil
}

// concat copies the numbers of all parts.
func (c *leafColumn) concat(row [][]parquet.Value) (b []byte, err error) {
	for i := 0; i < len(c.parts) && err == nil; i++ {
		b, err = c.extend(b, c.parts[i], row)
	}
	return b, err
}

// blocked reports whether a leafReader can read the column: values have a fixed size and need no conversion.
func (c *leafColumn) blocked() bool {
	if c.converted() || slices.ContainsFunc(c.parts, (*leafColumn).converted) {
		return false
	}
	if c.parts != nil || c.leaf.MaxRepetitionLevel == 0 {
		return !c.field.Ragged
	}
	// all lists were looked at
	return c.shape != nil && !c.odd && c.selection.Type == "" && c.DType != tensor.Bool && c.DType != tensor.Float16
}

// converted reports whether the numbers of the field are computed from the stored ones.
func (c *leafColumn) converted() bool {
	return c.scale >= 0 || c.extension.Bool || c.parts == nil && c.leaf.Node.Type().Kind() == parquet.Int96
}

// word returns the class number of a name.
func (c *leafColumn) word(name []byte) ([]byte, error) {
	n, ok := c.words[string(name)]
	if !ok {
		return nil, source.ValueError("label %q is none of the classes", source.Clip(string(name)))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
}

// list copies the elements of a list, which must have the shape of the field. Only with a shape from an extension
// type, a null list is a missing value.
func (c *leafColumn) list(values []parquet.Value) (b []byte, err error) {
	if c.extension.Shape != nil && len(values) == 1 && values[0].IsNull() && values[0].DefinitionLevel() == 0 {
		return column.Missing(c.missing, c.field)
	}
	if b, err = c.elements(values); err != nil || c.field.Ragged {
		return b, err
	}
	if n := len(b) / c.DType.Size(); n != c.field.Shape.Elems() {
		return nil, source.ValueError("a list of %d numbers where %v is expected", n,
			column.Type{DType: c.DType, Shape: c.shape})
	}
	return b, nil
}

// elements copies the numbers of a list, or of a list of lists whose inner lists all have the length inner. A value
// with repetition level 0 or 1 begins an inner list.
func (c *leafColumn) elements(values []parquet.Value) (b []byte, err error) {
	run := 0 // elements of the present inner list
	for i, v := range values {
		if v.IsNull() {
			if c.leaf.Node.Optional() && v.DefinitionLevel() == c.leaf.MaxDefinitionLevel-1 {
				return nil, source.ValueError("a null in a list")
			}
			// A null list, or an empty one, is a single null value.
			if len(values) == 1 {
				return nil, nil
			}
			return nil, source.ValueError("an empty list in a list")
		}
		if v.RepetitionLevel() < 2 && i > 0 && c.inner > 0 {
			if run != c.inner {
				break
			}
			run = 0
		}
		run++
		if b, err = c.appendNumber(b, v); err != nil {
			return nil, err
		}
	}
	if c.inner > 0 && (run != c.inner || len(values)%c.inner != 0) {
		return nil, source.ValueError("its inner lists do not all have %d values, as in the first row; "+
			"store them flat, or as a field of each", c.inner)
	}
	return b, nil
}

// parquetInt returns an integer or boolean. Parquet stores integers of 8 and 16 bits in 32 bits.
func parquetInt(v parquet.Value, d tensor.DType) int64 {
	switch {
	case d == tensor.Uint32:
		return int64(v.Uint32())
	case d.Size() == 8:
		return v.Int64()
	case d == tensor.Bool && (v.Kind() == parquet.Boolean && v.Boolean() || v.Kind() == parquet.Int32 && v.Int32() != 0):
		return 1
	case d == tensor.Bool:
		return 0
	}
	return int64(v.Int32())
}

// appendParquet appends a number as type d.
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
