package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// jsonlFormat reads a JSON object a line. The members of an object inside an object are
// columns too, named with a dot between.
type jsonlFormat struct{}

func openJSONL(ctx context.Context, path string, opts Options, wanted []Wanted) (Source, error) {
	return openTable(ctx, "jsonl", path, jsonlFormat{}, opts, wanted)
}

func (jsonlFormat) open(r io.Reader) (rowReader, error) {
	return &jsonlRows{lineReader{r: r}}, nil
}

// jsonlRows reads one file.
type jsonlRows struct{ lines lineReader }

// columns implements rowReader: each row names its own.
func (*jsonlRows) columns() []string { return nil }

// next implements rowReader.
func (j *jsonlRows) next(row *tableRow) error {
	for {
		line, err := j.lines.next()
		if err != nil {
			return err
		}
		if j.lines.at == 1 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		if text := strings.TrimSpace(line); text != "" {
			*row = tableRow{at: j.lines.at, text: text}
			return nil
		}
	}
}

// each implements tableFormat. Rows that quickJSON does not understand are read again by
// encoding/json, whose error is the result if it fails, too.
func (jsonlFormat) each(row *tableRow, f func(i int, column string, c cell)) error {
	q := quickJSON{text: row.text, f: f}
	if q.object("", 0) && q.blank() == 0 {
		return nil
	}
	i := -1
	return eachMember([]byte(row.text), "", 0, func(column string, c cell) {
		i++
		f(i, column, c)
	})
}

// quickJSON reads an object of texts without escapes, numbers, lists, true, false and null.
type quickJSON struct {
	text string // what is left
	f    func(i int, column string, c cell)
	n    int // members so far
}

// blank skips blanks and returns the next byte, 0 at the end.
func (q *quickJSON) blank() byte {
	for i := range len(q.text) {
		if c := q.text[i]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			q.text = q.text[i:]
			return c
		}
	}
	q.text = ""
	return 0
}

// object reads an object, and reports whether it could.
func (q *quickJSON) object(prefix string, depth int) bool {
	if q.blank() != '{' || depth > maxDepth {
		return false
	}
	q.text = q.text[1:]
	for first := true; ; first = false {
		switch c := q.blank(); {
		case c == '}' && first:
			q.text = q.text[1:]
			return true
		case c == '"':
		default:
			return false
		}
		key, ok := q.quoted()
		if !ok || q.blank() != ':' {
			return false
		}
		q.text = q.text[1:]
		if prefix != "" {
			key = prefix + key
		}
		if !q.value(key, depth) {
			return false
		}
		switch q.blank() {
		case ',':
			q.text = q.text[1:]
		case '}':
			q.text = q.text[1:]
			return true
		default:
			return false
		}
	}
}

// quoted takes a text without escapes.
func (q *quickJSON) quoted() (string, bool) {
	end := strings.IndexByte(q.text[1:], '"')
	if end < 0 {
		return "", false
	}
	s := q.text[1 : 1+end]
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '\\' || c >= utf8.RuneSelf && !utf8.ValidString(s) {
			return "", false
		}
	}
	q.text = q.text[end+2:]
	return s, true
}

// value reads a value, which is one cell unless it is an object.
func (q *quickJSON) value(name string, depth int) bool {
	var c cell
	switch q.blank() {
	case '"':
		text, ok := q.quoted()
		if !ok {
			return false
		}
		c = cell{text: text, quoted: true}
	case '{':
		return depth < maxDepth && q.object(name+".", depth+1)
	case '[':
		end := listEnd(q.text)
		if end == 0 || !json.Valid([]byte(q.text[:end])) {
			return false
		}
		c.text, q.text = q.text[:end], q.text[end:]
	default:
		end := strings.IndexAny(q.text, ",} \t\r\n")
		if end < 0 {
			return false
		}
		word := q.text[:end]
		if word != "true" && word != "false" && word != "null" && !jsonNumber(word) {
			return false
		}
		if q.text = q.text[end:]; word != "null" {
			c.text = word
		}
	}
	q.f(q.n, name, c)
	q.n++
	return true
}

// listEnd returns where a list that begins text ends, 0 if that is not plain.
func listEnd(text string) int {
	depth, inText := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\\':
			return 0
		case c == '"':
			inText = !inText
		case inText:
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// jsonNumber reports whether a word is a number of JSON.
func jsonNumber(w string) bool {
	digits := func() bool {
		n := 0
		for n < len(w) && w[n] >= '0' && w[n] <= '9' {
			n++
		}
		w = w[n:]
		return n > 0
	}
	w = strings.TrimPrefix(w, "-")
	if len(w) > 1 && w[0] == '0' && w[1] >= '0' && w[1] <= '9' || !digits() {
		return false
	}
	if strings.HasPrefix(w, ".") {
		if w = w[1:]; !digits() {
			return false
		}
	}
	if w != "" && (w[0] == 'e' || w[0] == 'E') {
		if w = w[1:]; w != "" && (w[0] == '+' || w[0] == '-') {
			w = w[1:]
		}
		return digits() && w == ""
	}
	return w == ""
}

// eachMember calls f for the members of an object, and of the objects in it.
func eachMember(text []byte, prefix string, depth int, f func(column string, c cell)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: the text is no JSON object", ErrValue)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
		}
		if err := eachCell(prefix+key.(string), raw, depth, f); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: text behind the JSON object", ErrValue)
	}
	return nil
}

func eachCell(name string, raw json.RawMessage, depth int, f func(column string, c cell)) error {
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("%w: not JSON: %w", ErrValue, err)
		}
		f(name, cell{text: text, quoted: true})
	case '{':
		if depth == maxDepth {
			return fmt.Errorf("%w: objects lie in more than %d objects", ErrValue, maxDepth)
		}
		return eachMember(raw, name+".", depth+1, f)
	case 'n':
		f(name, cell{})
	default:
		f(name, cell{text: string(raw)})
	}
	return nil
}
