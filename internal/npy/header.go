// Package npy reads the headers of .npy files, versions 1.0 to 3.0 of NumPy's format.
//
// A [Header] has the type, byte order, shape and order of axes, and where the data begin. The header of a file is text
// in the syntax of a Python dict; the parser takes what NumPy writes and no other Python, and bounds what it reads, as
// files are untrusted. Package layout writes headers.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/tensor"
)

// Magic begins every .npy file.
const Magic = "\x93NUMPY"

// maxHeader is more than any header of numbers has.
const maxHeader = 1 << 16

// Header is the header of a .npy file:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
type Header struct {
	DType     tensor.DType
	BigEndian bool // big endian
	Fortran   bool // the first axis runs fastest, and there are others
	Shape     []int64
	Offset    int64 // of the elements

	// Text is the number of bytes of an element that is a text, padded with zeros: 4 of a character if DType is
	// tensor.Uint32, which is UTF-32, and 1 if DType is tensor.Uint8. It is 0 of numbers.
	Text int
}

// ErrText is the error of arrays of texts, for which Read returns the header, too: most callers read numbers alone.
var ErrText = errors.New("they are texts, and no numbers")

// Read reads the header of an array, in versions 1 to 3.
func Read(r io.Reader) (h Header, err error) {
	var start [12]byte
	if _, err := io.ReadFull(r, start[:10]); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if string(start[:6]) != Magic {
		return h, errors.New("is not a .npy file")
	}
	size, begin := int(binary.LittleEndian.Uint16(start[8:])), 10
	switch start[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, start[10:]); err != nil {
			return h, fmt.Errorf("header: %w", err)
		}
		size, begin = int(binary.LittleEndian.Uint32(start[8:])), 12
	default:
		return h, fmt.Errorf("format version %d of .npy; known are 1 to 3", start[6])
	}
	if size > maxHeader {
		return h, fmt.Errorf("a header of %d bytes; arrays of numbers have short ones", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	h, err = parse(string(text))
	h.Offset = int64(begin + size)
	return h, err
}

// parse reads the Python dictionary of a header.
func parse(text string) (h Header, err error) {
	p := literal{rest: text}
	seen := 0
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.quoted()
		p.expect(":")
		switch key {
		case "descr":
			seen |= 1
			if p.accept("[") {
				return h, errors.New("is an array of records with named fields; save each as an array: numpy.savez(file, **{n: " +
					"a[n] for n in a.dtype.names})")
			}
			h.DType, h.BigEndian, h.Text, err = parseDescr(p.quoted())
		case "fortran_order":
			seen |= 2
			h.Fortran = p.word() == "True"
		case "shape":
			seen |= 4
			h.Shape = p.tuple()
		default:
			p.fail()
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && (seen != 7 || strings.TrimSpace(p.rest) != "") {
		p.fail()
	}
	if p.err != nil {
		return h, p.err
	}
	h.Fortran = h.Fortran && len(h.Shape) > 1
	return h, err
}

// parseDescr reads NumPy's type string, such as "<f4". Types of several bytes may be big endian; the caller swaps them.
// bfloat16 is not among them: NumPy has no name for it, and ml_dtypes writes it as raw bytes. text is Header.Text.
func parseDescr(descr string) (d tensor.DType, big bool, text int, err error) {
	if strings.HasPrefix(descr, ">") {
		big, descr = true, "<"+descr[1:]
	}
	for d := tensor.Bool; d.Size() > 0; d++ {
		if d != tensor.BFloat16 && d.Descr()[1:] == strings.TrimLeft(descr, "<|=") {
			return d, big && d.Size() > 1, 0, nil
		}
	}
	kind := strings.TrimLeft(descr, "<|=")
	if n, err := strconv.ParseUint(strings.TrimLeft(kind, "US"), 10, 28); err == nil && n > 0 && len(kind) > 1 {
		text, err = int(n), fmt.Errorf("holds elements of type %q: %w", descr, ErrText)
		switch kind[0] {
		case 'U':
			return tensor.Uint32, big, 4 * text, err
		case 'S':
			return tensor.Uint8, false, text, err
		}
	}
	if strings.HasSuffix(descr, "O") {
		return 0, false, 0, errors.New("has elements of type \"|O\", Python objects; write them as records with " +
			"penstock.Writer, or save arrays of numbers")
	}
	return 0, false, 0, fmt.Errorf("holds elements of type %q; readable are bool, int8 to int64, uint8 to uint64, "+
		"float16 to float64", descr)
}

// literal reads a Python literal. After the first thing that is not as expected, err is set.
type literal struct {
	rest string
	err  error
}

func (p *literal) fail() {
	if p.err == nil {
		p.err = fmt.Errorf("the header is not NumPy's at %q", p.rest[:min(len(p.rest), 40)])
	}
}

func (p *literal) accept(token string) bool {
	rest := strings.TrimLeft(p.rest, " \n")
	if p.err != nil || !strings.HasPrefix(rest, token) {
		return false
	}
	p.rest = rest[len(token):]
	return true
}

func (p *literal) expect(token string) {
	if !p.accept(token) {
		p.fail()
	}
}

// quoted reads a string. NumPy writes single quotes; other libraries write double ones. No name in a header needs an
// escape.
func (p *literal) quoted() string {
	quote := "'"
	if !p.accept(quote) {
		quote = `"`
		p.expect(quote)
	}
	text, rest, ok := strings.Cut(p.rest, quote)
	if !ok || p.err != nil {
		p.fail()
		return ""
	}
	p.rest = rest
	return text
}

// word reads True or False.
func (p *literal) word() string {
	for _, w := range []string{"True", "False"} {
		if p.accept(w) {
			return w
		}
	}
	p.fail()
	return ""
}

// tuple reads lengths of axes: (), (3,) or (3, 4).
func (p *literal) tuple() []int64 {
	shape := []int64{}
	for p.expect("("); p.err == nil && !p.accept(")"); {
		p.rest = strings.TrimLeft(p.rest, " ")
		end := bytes.IndexFunc([]byte(p.rest), func(r rune) bool { return r < '0' || r > '9' })
		n, err := strconv.ParseInt(p.rest[:max(end, 0)], 10, 64)
		if err != nil || len(shape) == tensor.MaxRank {
			p.fail()
			return nil
		}
		shape, p.rest = append(shape, n), p.rest[end:]
		p.accept("L") // of Python 2
		if !p.accept(",") {
			p.expect(")")
			return shape
		}
	}
	return shape
}
