package column

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// numberList parses a cell of numbers in the notations of tables: one number, a JSON list of numbers or of lists of
// one length, or words divided by blanks or semicolons, as NumPy and spreadsheets print arrays.
type numberList struct {
	rest  string
	count int               // numbers read so far
	each  func(word string) // called with every number; may be nil
}

// numbers appends all numbers to b as type d. dims is their shape; nil for a single number without brackets.
func (l *numberList) numbers(b []byte, d tensor.DType) (dims []int, out []byte, err error) {
	l.blank()
	if !strings.HasPrefix(l.rest, "[") {
		return l.words(b, d)
	}
	dims, b, err = l.nested(b, d, 0)
	l.blank()
	if err == nil && l.rest != "" {
		err = fmt.Errorf("text after the list: %q", source.Clip(l.rest))
	}
	return dims, b, err
}

// isBlank reports whether a character separates words.
func isBlank(r rune) bool { return r == ' ' || r == ';' || r == '\t' || r == '\n' || r == '\r' }

// words reads numbers without brackets.
func (l *numberList) words(b []byte, d tensor.DType) (dims []int, out []byte, err error) {
	words := strings.FieldsFunc(l.rest, isBlank)
	for _, w := range words {
		if b, err = l.number(b, w, d); err != nil {
			return nil, b, err
		}
	}
	if l.count == 1 {
		return nil, b, nil
	}
	return []int{l.count}, b, nil
}

var errRaggedList = errors.New("lists of several lengths inside of a list")

// nested reads a list from its bracket on. Lists in it must all have one shape.
func (l *numberList) nested(b []byte, d tensor.DType, depth int) (dims []int, out []byte, err error) {
	if depth == MaxDepth {
		return nil, b, fmt.Errorf("lists are in more than %d lists", MaxDepth)
	}
	l.rest = l.rest[1:]
	dims = []int{0}
	for {
		l.blank()
		switch {
		case l.rest == "":
			return dims, b, errors.New("the list has no end")
		case l.rest[0] == ']':
			l.rest = l.rest[1:]
			return dims, b, nil
		case dims[0] > 0 && l.rest[0] != ',':
			return dims, b, fmt.Errorf("a comma is missing at %q", source.Clip(l.rest))
		case dims[0] > 0:
			l.rest = l.rest[1:]
			l.blank()
		}
		var inner []int
		if inner, b, err = l.element(b, d, depth); err != nil {
			return dims, b, err
		}
		if dims[0] == 0 {
			dims = append(dims, inner...)
		} else if !slices.Equal(dims[1:], inner) {
			return dims, b, errRaggedList
		}
		dims[0]++
	}
}

// element reads the next number or list. depth is passed on, as a text of only brackets would overflow the stack.
func (l *numberList) element(b []byte, d tensor.DType, depth int) (dims []int, out []byte, err error) {
	if strings.HasPrefix(l.rest, "[") {
		return l.nested(b, d, depth+1)
	}
	end := strings.IndexAny(l.rest, ",] \t\r\n")
	if end < 0 {
		end = len(l.rest)
	}
	b, err = l.number(b, l.rest[:end], d)
	l.rest = l.rest[end:]
	return nil, b, err
}

func (l *numberList) number(b []byte, word string, d tensor.DType) ([]byte, error) {
	b, err := AppendNumber(b, word, d)
	if err == nil && l.each != nil {
		l.each(word)
	}
	l.count++
	return b, err
}

func (l *numberList) blank() { l.rest = strings.TrimLeft(l.rest, " \t\r\n") }
