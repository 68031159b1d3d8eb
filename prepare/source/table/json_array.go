package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/prepare/source"
)

// arrayLines reads a JSON array as JSON Lines: each element becomes a line, without the indentation of the file. It
// looks only at brackets and quotes. An element that is not JSON is found by the reader of lines.
type arrayLines struct {
	r     *bufio.Reader
	buf   []byte // lines, or parts of them, not returned yet
	err   error
	depth int // open brackets: 1 between the elements
	state arrayState

	inText, escaped bool

	blanks   []byte // outside of texts, not in buf yet
	indented bool   // the blanks contain a line break
	last     byte   // before the blanks
}

// arrayState says what was read last of the array.
type arrayState uint8

const (
	arrayBegun   arrayState = iota // nothing after the bracket
	arrayElement                   // a part of an element
	arrayComma                     // the comma after an element
	arrayEnded
)

// newArrayLines returns a reader of lines: each object of an array is a line. If r has no array, it returns the bytes
// of r.
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

// more processes what is buffered of the array, and appends the result to buf.
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

// add processes one byte.
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

// space adds the blanks before a byte. Indentation is replaced by what json.dumps writes without it.
func (a *arrayLines) space(c byte) {
	switch {
	case !a.indented:
		a.buf = append(a.buf, a.blanks...)
	case a.last != '{' && a.last != '[' && c != '}' && c != ']':
		a.buf = append(a.buf, ' ')
	}
	a.blanks, a.indented = a.blanks[:0], false
}
