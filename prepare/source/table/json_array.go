package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/prepare/source"
)

// arrayLines reads a JSON array as JSON Lines: each element becomes a line, without indentation. It looks only at
// brackets, commas and quotes; the reader of the lines notices an element that is not JSON.
type arrayLines struct {
	r     *bufio.Reader
	buf   []byte // lines, or parts of them, that were not read yet
	err   error
	depth int // open brackets; 1 between elements
	state arrayState

	inText, escaped bool

	blanks   []byte // blanks outside of texts that are not in buf yet
	indented bool   // the blanks contain a line break
	last     byte   // byte before the blanks
}

// arrayState is the kind of token that was read last in the array.
type arrayState uint8

const (
	arrayBegun   arrayState = iota // nothing after the opening bracket
	arrayElement                   // part of an element
	arrayComma                     // the comma after an element
	arrayEnded
)

// newArrayLines returns a reader of r as lines: the elements of an array, or the content of r unchanged if it is no
// array of objects.
func newArrayLines(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(512)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !source.IsArrayOfObjects(head) {
		return b, nil
	}
	_, err = b.Discard(bytes.IndexByte(head, '[') + 1)
	return &arrayLines{r: b, depth: 1}, err
}

// Read implements io.Reader.
func (a *arrayLines) Read(p []byte) (int, error) {
	for len(a.buf) == 0 && a.err == nil {
		a.more()
	}
	if len(a.buf) == 0 {
		return 0, a.err
	}
	n := copy(p, a.buf)
	a.buf = a.buf[n:]
	return n, nil
}

// more converts the buffered part of the array and appends it to buf.
func (a *arrayLines) more() {
	if _, err := a.r.Peek(1); err == io.EOF {
		if a.err = io.EOF; a.state != arrayEnded {
			a.err = errors.New("the JSON array has no end: the file is cut short")
		}
		return
	} else if err != nil {
		a.err = err
		return
	}
	text, _ := a.r.Peek(a.r.Buffered())
	a.buf = a.buf[:0]
	for i := 0; i < len(text) && a.err == nil; i++ {
		// Most bytes are in texts, which are copied up to the next quote, escape or line end.
		if a.inText && !a.escaped {
			n := bytes.IndexAny(text[i:], "\"\\\n")
			if n < 0 {
				n = len(text) - i
			}
			a.buf = append(a.buf, text[i:i+n]...)
			if i += n; i == len(text) {
				break
			}
		}
		a.err = a.add(text[i])
	}
	_, _ = a.r.Discard(len(text)) // it is buffered
}

// add converts one byte.
func (a *arrayLines) add(c byte) error {
	if a.inText {
		if c == '\n' {
			return errors.New("the JSON array has a line break in a text; JSON has \\n there")
		}
		a.inText = a.escaped || c != '"'
		a.escaped = !a.escaped && c == '\\'
		a.buf = append(a.buf, c)
		return nil
	}
	if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
		if a.state == arrayElement {
			a.blanks, a.indented = append(a.blanks, c), a.indented || c == '\n'
		}
		return nil
	}
	switch {
	case a.state == arrayEnded:
		return fmt.Errorf("%q after the end of the JSON array", c)
	case a.depth == 1 && c == ']':
		if a.state == arrayComma {
			return errors.New("a comma before the end of the JSON array")
		}
		a.depth, a.state = 0, arrayEnded
		return nil
	case a.depth == 1 && c == '}':
		return errors.New("a bracket } without the one that it closes in the JSON array")
	case a.depth == 1 && c == ',':
		if a.state != arrayElement {
			return errors.New("a comma without an element before it in the JSON array")
		}
		a.state, a.blanks, a.indented = arrayComma, a.blanks[:0], false
		a.buf = append(a.buf, '\n')
		return nil
	}
	a.state = arrayElement
	a.space(c)
	switch c {
	case '{', '[':
		a.depth++
	case '}', ']':
		a.depth--
	case '"':
		a.inText = true
	}
	a.buf, a.last = append(a.buf, c), c
	return nil
}

// space adds the blanks before a byte. Indentation becomes what json.dumps writes without it, so that the quick
// path of jsonlFormat understands the line.
func (a *arrayLines) space(c byte) {
	switch {
	case !a.indented:
		a.buf = append(a.buf, a.blanks...)
	case a.last != '{' && a.last != '[' && c != '}' && c != ']':
		a.buf = append(a.buf, ' ')
	}
	a.blanks, a.indented = a.blanks[:0], false
}
