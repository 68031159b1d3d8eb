package zarr

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// number is the data type of an array's elements.
type number struct {
	dtype tensor.DType
	parts int  // numbers of an element: 2 of a complex one, 0 of a text of any length
	big   bool // version 2: the bytes are stored in big-endian order
}

// isText reports whether elements are texts.
func (n number) isText() bool { return n.parts == 0 }

// bytes returns the size of an element.
func (n number) bytes() int { return n.dtype.Size() * n.parts }

// numbers are the data types of version 3, and names that version 2 has for them, without the order of bytes.
var numbers = map[string]number{
	"bool": {tensor.Bool, 1, false}, "b1": {tensor.Bool, 1, false},
	"int8": {tensor.Int8, 1, false}, "i1": {tensor.Int8, 1, false},
	"int16": {tensor.Int16, 1, false}, "i2": {tensor.Int16, 1, false},
	"int32": {tensor.Int32, 1, false}, "i4": {tensor.Int32, 1, false},
	"int64": {tensor.Int64, 1, false}, "i8": {tensor.Int64, 1, false},
	"uint8": {tensor.Uint8, 1, false}, "u1": {tensor.Uint8, 1, false},
	"uint16": {tensor.Uint16, 1, false}, "u2": {tensor.Uint16, 1, false},
	"uint32": {tensor.Uint32, 1, false}, "u4": {tensor.Uint32, 1, false},
	"uint64": {tensor.Uint64, 1, false}, "u8": {tensor.Uint64, 1, false},
	"float16": {tensor.Float16, 1, false}, "f2": {tensor.Float16, 1, false},
	"float32": {tensor.Float32, 1, false}, "f4": {tensor.Float32, 1, false},
	"float64": {tensor.Float64, 1, false}, "f8": {tensor.Float64, 1, false},
	"bfloat16":  {tensor.BFloat16, 1, false},
	"complex64": {tensor.Float32, 2, false}, "c8": {tensor.Float32, 2, false},
	"complex128": {tensor.Float64, 2, false}, "c16": {tensor.Float64, 2, false},
}

// number3 reads a data type of version 3; "string" is the zero number.
func number3(text json.RawMessage) (number, error) {
	var name codec
	if err := json.Unmarshal(text, &name); err != nil {
		return number{}, corrupt("data type: %v", err)
	}
	if n, ok := numbers[name.Name]; ok && len(name.Name) > 3 || name.Name == "string" {
		return n, nil
	}
	return number{}, unsupported("data type %s", brief(text))
}

// number2 reads a data type of version 2, as NumPy writes it. The type of objects, which are texts, is the zero number.
func number2(text json.RawMessage) (number, error) {
	var name string
	err := json.Unmarshal(text, &name)
	if err == nil && (name == "bfloat16" || name == "|O") {
		return numbers[name], nil
	}
	if err != nil || len(name) < 3 {
		return number{}, unsupported("data type %s", brief(text))
	}
	n, ok := numbers[name[1:]]
	if !ok || len(name) > 4 || strings.IndexByte("<>|", name[0]) < 0 {
		return number{}, unsupported("data type %s", brief(text))
	}
	n.big = name[0] == '>'
	return n, nil
}

func brief(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return "of no JSON"
	}
	return b.String()[:min(b.Len(), 100)]
}

// fillValue returns an element with the fill value, and nil if that is all zeros.
func (n number) fillValue(text json.RawMessage) ([]byte, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	parts := []json.RawMessage{text}
	if text[0] == '[' {
		if err := json.Unmarshal(text, &parts); err != nil || len(parts) != n.parts {
			return nil, corrupt("fill value %s", brief(text))
		}
	}
	var fill []byte
	for _, p := range parts {
		b, ok := n.part(p)
		if !ok {
			return nil, corrupt("fill value %s of %v", brief(text), n.dtype)
		}
		fill = append(fill, b...)
	}
	for len(fill) < n.bytes() { // a real number that stands for a complex one
		fill = append(fill, 0)
	}
	if len(fill) > n.bytes() {
		return nil, corrupt("fill value %s of %v", brief(text), n.dtype)
	}
	if !slices.ContainsFunc(fill, func(b byte) bool { return b != 0 }) {
		return nil, nil
	}
	return fill, nil
}

// part returns the bytes of one number, which JSON has as a number or a string.
func (n number) part(text json.RawMessage) ([]byte, bool) {
	var s string
	if json.Unmarshal(text, &s) == nil {
		return n.special(s)
	}
	if n.dtype == tensor.Bool {
		var b bool
		if json.Unmarshal(text, &b) != nil {
			return nil, false
		}
		return []byte{map[bool]byte{true: 1}[b]}, true
	}
	f, notFloat := strconv.ParseFloat(string(text), 64)
	if n.dtype.IsFloat() {
		b := make([]byte, n.dtype.Size())
		tensor.PutFloats(b, n.dtype, []float64{f}) // too large is infinite, as for zarr-python
		return b, notFloat == nil
	}
	b, err := n.dtype.AppendParsed(nil, string(text))
	if err != nil && notFloat == nil && math.Abs(f) < 1<<53 {
		b, err = n.dtype.AppendExact(nil, tensor.Float(f)) // an integer that is written as 3.0
	}
	return b, err == nil
}

// special returns the bytes of a number that JSON has as a string: one with a name, such as NaN, or its bytes in
// hexadecimal or base64.
func (n number) special(s string) ([]byte, bool) {
	special, is := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[s]
	switch {
	case !n.dtype.IsFloat() && s == "":
		return make([]byte, n.dtype.Size()), true
	case is:
		b, err := n.dtype.AppendExact(nil, tensor.Float(special))
		return b, err == nil
	case strings.HasPrefix(s, "0x"):
		b, err := hex.DecodeString(s[2:])
		slices.Reverse(b)
		return b, err == nil && len(b) == n.dtype.Size()
	}
	b, err := base64.StdEncoding.DecodeString(s) // of a complex number of version 2
	return b, err == nil && len(b) == n.bytes()
}
