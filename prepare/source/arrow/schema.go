package arrow

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/prepare/source/rows"
	"github.com/penstock/penstock/tensor"
)

// kind is the memory layout of the values of a node.
type kind uint8

const (
	fixed     kind = iota // numbers of width bytes
	bits                  // booleans
	decimal               // big integers of width bytes in two's complement, with scale decimal digits after the point
	binaries              // bytes, delimited by offsets of width bytes
	views                 // bytes, by views of 16 bytes that hold short values themselves
	lists                 // delimited by offsets of width bytes
	fixedList             // width elements in each value
	structs
	others  // a layout of width buffers that is skipped
	unknown // a layout whose buffers are not known, so the batch cannot be read at all
)

// node is a field of the schema. The fields of a struct, and the elements of a list, are its children.
type node struct {
	name       string
	kind       kind
	width      int
	scale      int
	dtype      tensor.DType // of numbers
	text       bool
	note       string
	refused    error
	children   []*node
	dictionary int64 // the number of the dictionary, -1 without one; index describes its indices
	index      *node
	inline     bool  // fixed-size binary as a fixedList of bytes: in batches, the child has no node and no validity of its own
	shape      []int // shape of the values of a fixedList by the extension arrow.fixed_shape_tensor; nil otherwise
}

// Numbers of the union Type in Arrow's Schema.fbs.
const (
	typeNull, typeInt, typeFloat, typeBinary, typeUTF8          = 1, 2, 3, 4, 5
	typeBool, typeDecimal, typeDate, typeTime, typeTimestamp    = 6, 7, 8, 9, 10
	typeList, typeStruct, typeFixedBinary, typeFixedList        = 12, 13, 15, 16
	typeDuration, typeLargeBinary, typeLargeUTF8, typeLargeList = 18, 19, 20, 21
	typeBinaryView, typeUTF8View                                = 23, 24
)

// otherTypes are the types that cannot become a field, with their names and numbers of buffers. A file may have
// such columns beside the wanted ones, so their buffers must be counted to find the next column's.
var otherTypes = map[int64]struct {
	name    string
	buffers int
}{11: {"interval", 2}, 14: {"union", 1}, 17: {"map", 2}, 22: {"run_end_encoded", 0}, 25: {"list_view", 3},
	26: {"large_list_view", 3}}

// maxNodes and maxDepth limit a schema. In a flatbuffer, many fields may point to one table, so a small file can
// describe a tree of any size.
const maxNodes, maxDepth = 20_000, 16

// schema is the columns of a file, and the features of the Hugging Face Hub by column.
type schema struct {
	nodes    []*node
	features map[string]column.Feature
}

// newSchema reads the table Schema of Schema.fbs.
func newSchema(t *table) (*schema, error) {
	if t.number(0, 2, 0) != 0 {
		return nil, errors.New(
			"big-endian Arrow files are not supported; write the file with pyarrow on a little-endian machine")
	}
	s, left := new(schema), maxNodes
	for _, f := range t.tables(1) {
		n, err := newNode(f, &left, 0)
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, n)
	}
	for _, kv := range t.tables(2) {
		if kv.text(0) == "huggingface" {
			s.features = column.HubFeatures(kv.text(1))
		}
	}
	return s, nil
}

// newNode reads the table Field with its children. left is the number of nodes that are still allowed in the whole
// schema, and depth the number of enclosing fields.
func newNode(t *table, left *int, depth int) (*node, error) {
	if *left--; *left < 0 || depth > maxDepth {
		return nil, errors.New("has too many columns, or columns in columns")
	}
	n := &node{name: t.text(0), dictionary: -1}
	for _, c := range t.tables(5) {
		child, err := newNode(c, left, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	if n.take(t.number(2, 1, 0), t.table(3)); n.kind == unknown {
		return nil, fmt.Errorf("column %s is of type %d, which is not known", n.name, t.number(2, 1, 0))
	}
	n.extend(t.tables(6))
	// Field.dictionary: the column has indices, and the type describes the values.
	if d := t.table(4); d != nil {
		if n.kind != binaries && n.kind != views {
			n.refused = errors.New("a dictionary of values other than strings cannot become a field; " +
				"write the column without one")
		}
		n.dictionary = d.number(0, 8, 0)
		if n.index = (&node{dictionary: -1}); d.table(1) == nil { // the default is int32
			n.index.kind, n.index.width, n.index.dtype = fixed, 4, tensor.Int32
		} else {
			n.index.take(typeInt, d.table(1))
		}
	}
	return n, nil
}

// extend applies the extension type of a column: booleans that take a byte, and the shape of lists.
// https://arrow.apache.org/docs/format/CanonicalExtensions.html
func (n *node) extend(metadata []*table) {
	var name, text string
	for _, kv := range metadata {
		switch kv.text(0) {
		case "ARROW:extension:name":
			name = kv.text(1)
		case "ARROW:extension:metadata":
			text = kv.text(1)
		}
	}
	if name == "arrow.bool8" && n.kind == fixed && n.dtype == tensor.Int8 {
		n.dtype = tensor.Bool
	}
	var is struct{ Shape, Permutation []int }
	if name != "arrow.fixed_shape_tensor" || n.kind != fixedList || json.Unmarshal([]byte(text), &is) != nil {
		return
	}
	elements := 1
	for _, axis := range is.Shape {
		if axis < 1 || axis > n.width || elements > n.width/axis {
			return
		}
		elements *= axis
	}
	switch {
	// A shape that does not fit is ignored: the column is then a list of n.width numbers.
	case elements != n.width || len(is.Shape) >= tensor.MaxRank:
	case !slices.IsSorted(is.Permutation):
		n.refused = fmt.Errorf("its tensors are stored in another order of axes, %v; write them in C order", is.Permutation)
	default:
		n.shape = is.Shape
	}
}

// Extension describes the extension type of a column.
type Extension struct {
	Shape   []int // shape of each list of numbers; nil if the type has none
	Bool    bool  // the numbers are booleans: 0 is false, any other number is true
	Refused error
}

// Extensions returns, by column name, the extension types of columns of numbers and of lists of numbers. text is
// the value of ARROW:schema in the metadata of a Parquet file: a schema message in base64. Parquet itself has no
// such types, so pyarrow keeps them there. Malformed text has no extension types.
func Extensions(text string) map[string]Extension {
	found := map[string]Extension{}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) < 8 {
		return found
	}
	if binary.LittleEndian.Uint32(b) == 0xffffffff { // which files of Arrow before 0.15 do not have
		b = b[4:]
	}
	meta := &flatbuffer{b: b[4:]}
	message := meta.root()
	t := message.table(2)
	if t == nil || message.number(1, 1, 0) != headerSchema || meta.bad {
		return found
	}
	s, err := newSchema(t)
	if err != nil || meta.bad {
		return found
	}
	for _, l := range s.leaves() {
		n := s.nodes[l.path[0]]
		for _, at := range l.path[1:] {
			n = n.children[at]
		}
		// The element type is below all lists.
		inner := n
		for inner.kind == lists || inner.kind == fixedList {
			inner = inner.children[0]
		}
		e := Extension{Shape: n.shape, Bool: inner.kind == fixed && inner.dtype == tensor.Bool}
		if n.kind == fixedList {
			e.Refused = n.refused
		}
		if e.Shape != nil || e.Bool || e.Refused != nil {
			found[l.Name] = e
		}
	}
	return found
}

var (
	units   = []string{"seconds", "milliseconds", "microseconds", "nanoseconds"}
	ints    = map[int64]tensor.DType{8: tensor.Int8, 16: tensor.Int16, 32: tensor.Int32, 64: tensor.Int64}
	uints   = map[int64]tensor.DType{8: tensor.Uint8, 16: tensor.Uint16, 32: tensor.Uint32, 64: tensor.Uint64}
	singles = []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64}
)

// take sets the layout of a node by its type: the number of the union Type, and the table with its parameters.
// Numbers in default arguments are the defaults of Schema.fbs.
func (n *node) take(typ int64, t *table) {
	number := func(d tensor.DType, note string) { n.kind, n.dtype, n.width, n.note = fixed, d, max(d.Size(), 1), note }
	unit := func(otherwise int64) string { return units[t.number(0, 2, otherwise)&3] }
	switch typ {
	case typeNull:
		n.kind, n.refused = others, errors.New("holds only nulls")
	case typeInt:
		d := uints[t.number(0, 4, 0)]
		if t.number(1, 1, 0) != 0 {
			d = ints[t.number(0, 4, 0)]
		}
		number(d, "")
	case typeFloat:
		number(singles[min(t.number(0, 2, 0)&3, 2)], "")
	case typeBool:
		n.kind, n.dtype = bits, tensor.Bool
	case typeDecimal:
		n.kind, n.dtype, n.width, n.scale = decimal, tensor.Float64, int(t.number(2, 4, 128)/8), int(t.number(1, 4, 0))
		n.note = fmt.Sprintf("decimal with %d digits after the point, as the nearest float64", n.scale)
		if n.width != 4 && n.width != 8 && n.width != 16 && n.width != 32 || n.scale < -400 || n.scale > 400 {
			n.refused = errors.New("a decimal of unknown width or scale")
		}
	case typeDate:
		if number(tensor.Int32, "days since 1970-01-01"); t.number(0, 2, 1) == 1 {
			number(tensor.Int64, "milliseconds since 1970-01-01")
		}
	case typeTime:
		number(ints[t.number(1, 4, 32)], unit(1)+" since midnight")
	case typeTimestamp:
		number(tensor.Int64, unit(0)+" since 1970-01-01")
	case typeDuration:
		number(tensor.Int64, unit(1))
	case typeBinary, typeUTF8:
		n.kind, n.width, n.text = binaries, 4, typ == typeUTF8
	case typeLargeBinary, typeLargeUTF8:
		n.kind, n.width, n.text = binaries, 8, typ == typeLargeUTF8
	case typeBinaryView, typeUTF8View:
		n.kind, n.width, n.text = views, 16, typ == typeUTF8View
	case typeFixedBinary, typeFixedList: // of bytes, that is a list of uint8
		n.kind, n.width = fixedList, int(t.number(0, 4, 0))
		if n.width <= 0 {
			n.refused, n.width = fmt.Errorf("values of %d elements cannot become a field", n.width), max(n.width, 0)
		}
		// From here on, fixed-size binary is a fixed-size list with a child of bytes, like a list of uint8.
		if typ == typeFixedBinary {
			n.children, n.inline = []*node{{kind: fixed, width: 1, dtype: tensor.Uint8, dictionary: -1}}, true
		}
	case typeList, typeLargeList:
		if n.kind, n.width = lists, 4; typ == typeLargeList {
			n.width = 8
		}
	case typeStruct:
		n.kind = structs
	default:
		other, known := otherTypes[typ]
		n.kind, n.width, n.refused = others, other.buffers, fmt.Errorf("a %s cannot become a field", other.name)
		if typ == 14 && t.number(0, 2, 0) == 1 {
			n.width = 2 // a dense union
		}
		if !known {
			n.kind = unknown
		}
	}
	if n.kind == fixed && n.dtype == tensor.Invalid {
		n.refused = errors.New("numbers of unknown width")
	}
	if one := n.kind == lists || n.kind == fixedList; one && len(n.children) != 1 {
		n.kind = unknown
	}
}

// leaf is a column: a node that is at the top or only in structs.
type leaf struct {
	rows.Column
	path []int // positions among children, from the top of the schema
}

// leaves returns the columns of the schema in order.
func (s *schema) leaves() (list []*leaf) {
	for i, n := range s.nodes {
		list = s.appendLeaves(list, n, n.name, []int{i})
	}
	return list
}

// appendLeaves appends the columns at and below a node. Structs become columns with dotted names, except for the
// struct of bytes and path in which the Hugging Face Hub stores an image or a sound: it is one column, as the path
// is only a name.
func (s *schema) appendLeaves(list []*leaf, n *node, name string, path []int) []*leaf {
	if n.kind == structs {
		if at := n.imageBytes(); at >= 0 {
			l := newLeaf(n.children[at], name, append(path, at))
			l.Image, l.Text, l.Sniff = s.features[name].Type != "Audio", false, s.features[name].Type == "Audio"
			return append(list, l)
		}
		for i, c := range n.children {
			list = s.appendLeaves(list, c, name+"."+c.name, append(path[:len(path):len(path)], i))
		}
		return list
	}
	l := newLeaf(n, name, path)
	if f := s.features[name]; f.Type == "ClassLabel" && l.DType != tensor.Invalid && !l.DType.IsFloat() &&
		l.Shape == nil {
		l.Classes = f.Names
	}
	return append(list, l)
}

// imageBytes returns the position of the child with the bytes, if a node is a struct of the Hugging Face Hub for an
// image or a sound; otherwise -1.
func (n *node) imageBytes() int {
	if len(n.children) != 2 {
		return -1
	}
	for i, c := range n.children {
		if other := n.children[1-i]; c.name == "bytes" && (c.kind == binaries || c.kind == views) && other.name == "path" {
			return i
		}
	}
	return -1
}

// newLeaf returns the column of a node. It descends through lists: fixed-size ones are axes of the shape, and any
// other list makes the field ragged.
func newLeaf(n *node, name string, path []int) *leaf {
	l := &leaf{Column: rows.Column{Name: name, Refused: n.refused, Note: n.note}, path: path}
	inner, rank := n, 0
	// newNode has made sure that a list has exactly one child.
	for ; inner.kind == lists || inner.kind == fixedList; inner = inner.children[0] {
		l.List = l.List || inner.kind == lists
		if inner.shape != nil && rank == 0 {
			l.Shape = append(l.Shape, inner.shape...)
		} else {
			l.Shape = append(l.Shape, inner.width)
		}
		if rank++; rank >= tensor.MaxRank-1 {
			l.Refused = errors.New("lists are in too many lists")
			break
		}
		if c := inner.children[0]; c.refused != nil {
			l.Refused = c.refused
		}
	}
	// Lengths of lists are known only from the rows, so a scan has to find the shape.
	if l.DType = inner.dtype; l.List {
		l.Shape = nil
	}
	switch at := inner.imageBytes(); {
	case l.Refused != nil:
	case at >= 0 && rank == 1:
		l.Images = true
	case inner.kind == structs:
		l.Refused = errors.New("a list of structs cannot become a field; write each member as a list")
	case inner.dtype == tensor.Invalid && rank > 1:
		l.Refused = errors.New("lists of lists of strings cannot become a field")
	case inner.dtype == tensor.Invalid:
		l.Text, l.Sniff, l.Shape = inner.text && rank == 0, !inner.text || rank > 0, nil
	}
	return l
}
