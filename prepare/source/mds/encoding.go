package mds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/rows"
	"github.com/penstock/penstock/tensor"
)

// encoding is how the values of a column are bytes (streaming/base/format/mds/encodings.py), and the column that
// they become.
type encoding struct {
	rows.Column
	name   string
	fixed  int64        // bytes of each value; 0 if values vary
	static tensor.DType // element type of ndarray; Invalid if each value says its own
	shape  []int        // shape of ndarray; nil if each value says its own
}

// newEncoding parses the name of an encoding. An encoding that cannot become a field has Refused set, and its bytes
// are skipped.
//
//	bytes                     images if the first values are, text if all are UTF-8, otherwise uint8[*]
//	str, json                 text
//	jpeg, png                 files of images
//	int, str_int              int64
//	str_float, str_decimal    float64
//	uint8 ... float64         numbers of that type
//	pil                       pixels: uint8 of any height, width and number of channels
//	ndarray                   an array; ndarray:float32 and ndarray:float32:3,4 have a type and a shape for all
//	pkl                       refused
func newEncoding(text string) (e encoding) {
	name, args, _ := strings.Cut(text, ":")
	e.name = name
	switch name {
	case "bytes":
		e.Sniff = true
	case "str", "json":
		e.Text = true
	case "jpeg", "png":
		e.Image = true
	case "int", "str_int":
		e.DType = tensor.Int64
	case "str_float", "str_decimal":
		e.DType = tensor.Float64
	case "pil":
		e.DType, e.List = tensor.Uint8, true
	case "ndarray":
		e.array(args)
	case "pkl":
		e.Refused = errors.New("is a Python pickle, which may run any program")
	default:
		if e.DType = scalars[name]; e.DType == tensor.Invalid {
			e.Refused = fmt.Errorf("values of type %s cannot become a field", text)
		}
	}
	// Numbers as text vary in length, although the value is a number of fixed size.
	if !e.List && e.DType != tensor.Invalid && !strings.HasPrefix(name, "str_") {
		e.fixed = int64(e.DType.Size() * tensor.Shape(e.Shape).Elems())
	}
	return e
}

// scalars has the element types of numbers and of arrays, by name.
var scalars = map[string]tensor.DType{
	"uint8": tensor.Uint8, "uint16": tensor.Uint16, "uint32": tensor.Uint32, "uint64": tensor.Uint64, "int8": tensor.Int8,
	"int16": tensor.Int16, "int32": tensor.Int32,
	"int64": tensor.Int64, "float16": tensor.Float16, "float32": tensor.Float32, "float64": tensor.Float64,
}

// dynamic has the element types of arrays that carry their type, by its code.
var dynamic = map[byte]tensor.DType{
	8: tensor.Uint8, 9: tensor.Int8, 16: tensor.Uint16, 17: tensor.Int16, 18: tensor.Float16, 32: tensor.Uint32,
	33: tensor.Int32, 34: tensor.Float32,
	64: tensor.Uint64, 65: tensor.Int64, 66: tensor.Float64,
}

// array parses the arguments of ndarray: none, a type, or a type and a shape.
func (e *encoding) array(args string) {
	dtype, dims, shaped := strings.Cut(args, ":")
	if e.static = scalars[dtype]; e.static == tensor.Invalid {
		e.List, e.Sniff = true, true // the first value says the type
		if args != "" {
			e.Refused = fmt.Errorf("arrays of %q cannot become a field", args)
		}
		return
	}
	e.DType, e.List = e.static, !shaped
	for _, word := range strings.Split(dims, ",") {
		n, err := strconv.Atoi(word)
		if shaped && (err != nil || n < 1 || n > source.MaxValue || len(e.shape) == tensor.MaxRank-1) {
			e.Refused = fmt.Errorf("an array of shape %q cannot become a field", dims)
			return
		}
		if shaped {
			e.shape = append(e.shape, n)
		}
	}
	if e.Shape = e.shape; shaped {
		e.Refused = tensor.Spec{Name: "x", DType: e.DType, Shape: e.shape}.Validate()
	}
}

var errArray = source.ValueError("an array that is not as its type says")

// value returns the value in b. Numbers that are stored as text are appended to buf.
func (e *encoding) value(b []byte, buf *[]byte) (x rows.Value, err error) {
	switch e.name {
	case "ndarray":
		return e.arrayValue(b)
	case "pil":
		return pixels(b)
	case "str_int":
		n, err := strconv.ParseInt(string(b), 10, 64)
		return number(uint64(n), tensor.Int64, err, buf)
	case "str_float", "str_decimal":
		n, err := strconv.ParseFloat(string(b), 64)
		if errors.Is(err, strconv.ErrRange) {
			err = nil // it is infinite, as in Python
		}
		return number(math.Float64bits(n), tensor.Float64, err, buf)
	}
	x.Data, x.DType = b, e.DType
	return x, nil
}

// number returns a number whose 8 bytes are n, or the error of parsing it.
func number(n uint64, d tensor.DType, err error, buf *[]byte) (x rows.Value, _ error) {
	if err != nil {
		return x, source.ValueError("%w", err)
	}
	begin := len(*buf)
	*buf = binary.LittleEndian.AppendUint64(*buf, n)
	return rows.Value{DType: d, Data: (*buf)[begin:]}, nil
}

// arrayValue reads an array: a byte with the code of the type, a byte with rank<<2 and the logarithm of the size of
// a length, the lengths, and the elements. The first byte is absent if the encoding has a type, and all but the
// elements if it has a shape.
func (e *encoding) arrayValue(b []byte) (x rows.Value, err error) {
	if x.DType = e.static; x.DType == tensor.Invalid {
		if len(b) == 0 || dynamic[b[0]] == tensor.Invalid {
			return x, errArray
		}
		x.DType, b = dynamic[b[0]], b[1:]
	}
	if e.shape != nil {
		x.SetShape(e.shape...)
	} else {
		if len(b) == 0 {
			return x, errArray
		}
		// Lengths have 1, 2, 4 or 8 bytes each.
		rank, size := int(b[0]>>2), 1<<(b[0]&3)
		if b = b[1:]; rank >= tensor.MaxRank || len(b) < rank*size {
			return x, errArray
		}
		for i := range rank {
			var word [8]byte
			copy(word[:], b[i*size:(i+1)*size])
			n := binary.LittleEndian.Uint64(word[:])
			// A longer axis cannot be right, and would not fit in an int.
			if n > uint64(len(b)) {
				return x, errArray
			}
			x.Dims[i] = int(n)
		}
		x.Rank, b = rank, b[rank*size:]
	}
	return x, fits(&x, b)
}

// fits sets the data of x to b if b has exactly the bytes of the shape. It divides instead of multiplying, as the
// lengths come from the file and could overflow.
func fits(x *rows.Value, b []byte) error {
	left := int64(len(b))
	for _, n := range x.Shape() {
		if n == 0 {
			left, n = 0, 1
		}
		if left%int64(n) != 0 {
			return errArray
		}
		left /= int64(n)
	}
	if left != int64(x.DType.Size()) && len(b) > 0 {
		return errArray
	}
	x.Data = b
	return nil
}

// channels has the number of channels of Pillow's modes whose channels are bytes.
var channels = map[string]int{"L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4, "YCbCr": 3, "HSV": 3, "LAB": 3, "LA": 2, "P": 1}

// pixels reads a Pillow image: width, height and length of the mode as uint32, the mode, and the pixels.
func pixels(b []byte) (x rows.Value, err error) {
	if len(b) < 12 {
		return x, errArray
	}
	width, height, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]),
		int64(binary.LittleEndian.Uint32(b[8:]))
	if b = b[12:]; n > int64(len(b)) || width > 1<<30 || height > 1<<30 {
		return x, errArray
	}
	mode := string(b[:n])
	c := channels[mode]
	if x.DType = tensor.Uint8; c == 0 {
		return x, source.ValueError("an image of mode %q", source.Clip(mode))
	}
	if x.SetShape(int(height), int(width), c); c == 1 {
		x.SetShape(int(height), int(width))
	}
	return x, fits(&x, b[n:])
}
