package array

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// maxNPYHeader is more than any header of numbers has.
const maxNPYHeader = 1 << 16

// Header is the header of a .npy file:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
type Header struct {
	DType     tensor.DType
	BigEndian bool // big endian
	fortran   bool // the first axis runs fastest, and there are others
	Shape     []int64
	Offset    int64 // of the elements
}

// ReadNPY reads the header of an array in C order.
func ReadNPY(r io.Reader) (Header, error) {
	h, err := readAnyNPY(r)
	if err == nil && h.fortran {
		err = errFortran
	}
	return h, err
}

// readAnyNPY reads the header of an array, in versions 1 to 3.
func readAnyNPY(r io.Reader) (h Header, err error) {
	var start [12]byte
	if _, err := io.ReadFull(r, start[:10]); err != nil {
		return h, fmt.Errorf("header: %w", CutShort(err))
	}
	if string(start[:6]) != source.NPYMagic {
		return h, errors.New("is not a .npy file")
	}
	size, begin := int(binary.LittleEndian.Uint16(start[8:])), 10
	switch start[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, start[10:]); err != nil {
			return h, fmt.Errorf("header: %w", CutShort(err))
		}
		size, begin = int(binary.LittleEndian.Uint32(start[8:])), 12
	default:
		return h, fmt.Errorf("format version %d of .npy; known are 1 to 3", start[6])
	}
	if size > maxNPYHeader {
		return h, fmt.Errorf("a header of %d bytes; arrays of numbers have short ones", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("header: %w", CutShort(err))
	}
	h, err = parseNPYHeader(string(text))
	h.Offset = int64(begin + size)
	return h, err
}

// parseNPYHeader reads the Python dictionary of a header.
func parseNPYHeader(text string) (h Header, err error) {
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
				return h, errors.New("is an array of records with named fields; save each as an array: numpy.savez(file, **{n: a[n] for n in a.dtype.names})")
			}
			h.DType, h.BigEndian, err = parseDescr(p.quoted())
		case "fortran_order":
			seen |= 2
			h.fortran = p.word() == "True"
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
	h.fortran = h.fortran && len(h.Shape) > 1
	return h, err
}

var errFortran = errors.New("is in Fortran order, which is read of .npy files that are by themselves; rewrite it with numpy.save(file, numpy.ascontiguousarray(a))")

// parseDescr reads NumPy's type string.
func parseDescr(descr string) (d tensor.DType, big bool, err error) {
	if strings.HasPrefix(descr, ">") {
		big, descr = true, "<"+descr[1:]
	}
	for d := tensor.Bool; d.Size() > 0; d++ {
		if d != tensor.BFloat16 && d.Descr()[1:] == strings.TrimLeft(descr, "<|=") {
			return d, big && d.Size() > 1, nil
		}
	}
	return 0, false, fmt.Errorf("holds elements of type %q; readable are bool, int8 to int64, uint8 to uint64, float16 to float64", descr)
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

// field returns the field whose records are along the first axis, and their number.
func (h Header) field(name, origin string) (source.Field, int64, error) {
	if len(h.Shape) == 0 {
		return source.Field{}, 0, errors.New("is a single number; an array of records has a first axis")
	}
	shape := make([]int, len(h.Shape)-1)
	for i, n := range h.Shape[1:] {
		shape[i] = int(n)
	}
	f := source.NumberField(name, h.DType, shape...)
	f.Origin = origin
	if err := f.Spec.Validate(); err != nil {
		return f, 0, err
	}
	if h.Shape[0] > (1<<62)/int64(f.RecordBytes()) {
		return f, 0, fmt.Errorf("%d records are more than any file holds", h.Shape[0])
	}
	return f, h.Shape[0], nil
}

// layout returns how the array's values become those of the field.
func (h Header) layout(f source.Field) Fixed {
	l := Fixed{Size: f.RecordBytes()}
	if h.BigEndian {
		l.convert = Swapped(h.DType.Size())
	}
	return l
}

// checkSize compares the bytes of elements that the header of a file promises with those that are in it.
func (h Header) checkSize(need, size int64) error {
	switch there := size - h.Offset; {
	case need > there:
		return fmt.Errorf("is cut short: the header promises %d bytes of elements, there are %d", need, there)
	case need < there:
		return fmt.Errorf("has %d bytes after the array of its header, as of a second numpy.save into one file; write each array to a file of its own", there-need)
	}
	return nil
}
