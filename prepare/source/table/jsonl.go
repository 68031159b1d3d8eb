package table

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// jsonlFormat is a file with a JSON object in each line, or with an array of objects. Members of objects in objects
// are columns, too, with names joined by dots.
type jsonlFormat struct{}

// OpenJSONL opens files of JSON Lines, or of an array of objects.
func OpenJSONL(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	return openTable(ctx, root, "jsonl", path, jsonlFormat{}, opts, selection)
}

func (jsonlFormat) open(r io.Reader) (rowReader, error) {
	lines, err := newArrayLines(r)
	return &jsonlRows{lineReader{r: lines}}, err
}

// jsonlRows reads a file of JSON Lines.
type jsonlRows struct{ lines lineReader }

// columns implements rowReader: there is no header.
func (*jsonlRows) columns() []string { return nil }

// next implements rowReader.
func (j *jsonlRows) next(row *tableRow) error {
	for {
		line, err := j.lines.next()
		if err != nil {
			return err
		}
		if j.row(line, j.lines.at, row) {
			return nil
		}
	}
}

// text implements rowReader.
func (j *jsonlRows) text() *lineReader { return &j.lines }

// separator implements rowReader: rows have more than cells and separators.
func (*jsonlRows) separator() byte { return 0 }

// whole implements rowReader.
func (*jsonlRows) whole(lines string) (end int, plain bool) { return len(lines), true }

// row implements rowReader.
func (*jsonlRows) row(line string, at int64, row *tableRow) bool {
	if at == 1 {
		line = strings.TrimPrefix(line, byteOrderMark)
	}
	text := strings.TrimSpace(line)
	*row = tableRow{at: at, text: text}
	return text != ""
}

// each implements tableFormat. A row that quickJSON does not understand is read again by encoding/json, whose error
// counts.
func (jsonlFormat) each(row *tableRow, f func(i int, column string, c column.Cell)) error {
	q := quickJSON{text: row.text, f: f}
	if row.file != nil {
		q.keys, q.order = row.file.table.keys, row.file.table.order
	}
	// If quickJSON gives up in the middle of a row, f sees the first cells again below, which does no harm.
	if q.whole() {
		return q.twice()
	}
	i, names := -1, []string(nil)
	err := column.EachMember([]byte(row.text), "", 0, func(column string, c column.Cell) {
		i++
		names = append(names, column)
		f(i, column, c)
	})
	return cmp.Or(err, twice(names))
}

// twice returns an error if a name occurs twice: readers of JSON do not agree which of the values counts.
func twice(names []string) error {
	// Most rows have few members, for which comparing is cheaper than a map.
	const few = 16 // to compare each with each
	seen := make(map[string]bool)
	for i, name := range names {
		known := len(names) <= few && slices.Contains(names[:i], name)
		if len(names) > few {
			known = seen[name]
			seen[name] = true
		}
		if known {
			return source.ValueError("two members are called %q", source.Clip(name))
		}
	}
	return nil
}

// quickJSON parses an object of strings without escapes, numbers, lists, true, false and null. For anything else it
// gives up, and encoding/json reads the row.
type quickJSON struct {
	text  string   // unread rest
	keys  []string // names of members in the order that is expected; "" for a name with escapes
	order []string // the same names, including those with escapes
	f     func(i int, column string, c column.Cell)
	n     int      // number of members so far
	names []string // names of members from the first one that was not expected
}

// twice returns an error if a name occurs twice. Members in the expected order have different names, so only the
// other names are compared.
func (q *quickJSON) twice() error {
	if q.names == nil {
		return nil
	}
	return twice(append(slices.Clone(q.order[:q.n-len(q.names)]), q.names...))
}

// whole parses an object that is the whole text, and reports whether it could.
func (q *quickJSON) whole() bool {
	if !q.object("", 0) {
		return false
	}
	q.blank()
	return q.text == ""
}

// blank skips blanks and returns the next byte, which it does not consume; 0 at the end. The text may contain a NUL
// byte, too.
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

// object parses an object, and reports whether it could.
func (q *quickJSON) object(prefix string, depth int) bool {
	if q.blank() != '{' || depth > column.MaxDepth {
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
		key, ok := q.key()
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

// key parses the name of a member. Most rows have their members in the same order, so the expected name is compared
// first.
func (q *quickJSON) key() (string, bool) {
	if q.n < len(q.keys) {
		key := q.keys[q.n]
		if end := 1 + len(key); len(q.text) > end && q.text[end] == '"' && q.text[1:end] == key {
			q.text = q.text[end+1:]
			return key, true
		}
	}
	return q.quoted()
}

// quoted parses a string without escapes.
func (q *quickJSON) quoted() (string, bool) {
	end := strings.IndexByte(q.text[1:], '"')
	if end < 0 {
		return "", false
	}
	s := q.text[1 : 1+end]
	if !isPlain(s) {
		return "", false
	}
	q.text = q.text[end+2:]
	return s, true
}

// isPlain reports whether JSON writes a text without quotes unchanged.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '\\' || c >= utf8.RuneSelf && !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// value parses a value, which is a cell unless it is an object.
func (q *quickJSON) value(name string, depth int) bool {
	var c column.Cell
	switch q.blank() {
	case '"':
		text, ok := q.quoted()
		if !ok {
			return false
		}
		c = column.Cell{Text: text, Quoted: true}
	case '{':
		return depth < column.MaxDepth && q.object(name+".", depth+1)
	case '[':
		end := listEnd(q.text)
		if end == 0 || !json.Valid([]byte(q.text[:end])) || !utf8.ValidString(q.text[:end]) {
			return false
		}
		c.Text, q.text = q.text[:end], q.text[end:]
	default:
		word := q.text[:numberEnd(q.text)]
		if word == "" {
			word = literal(q.text)
		}
		if word == "" {
			return false
		}
		if q.text = q.text[len(word):]; word != "null" {
			c.Text = word
		}
	}
	q.f(q.n, name, c)
	if q.names != nil || q.n >= len(q.order) || q.order[q.n] != name {
		q.names = append(q.names, name)
	}
	q.n++
	return true
}

// literal returns the literal true, false or null at the beginning of a text, "" if the text begins otherwise.
func literal(text string) string {
	for _, w := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(text, w) {
			return w
		}
	}
	return ""
}

// listEnd returns the length of the list at the beginning of text; 0 if it has escapes or no end.
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

// numberEnd returns the length of the JSON number at the beginning of text; 0 if the text does not begin with a
// number.
func numberEnd(text string) int {
	i := 0
	if i < len(text) && text[i] == '-' {
		i++
	}
	first := i
	if i = digitsEnd(text, i); i == first || text[first] == '0' && i > first+1 {
		return 0
	}
	if i < len(text) && text[i] == '.' {
		i++
		point := i
		if _, ok := column.EightDigits(text[i:]); ok {
			i += 8
		}
		if i = digitsEnd(text, i); i == point {
			return 0
		}
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		power := i
		if i = digitsEnd(text, power); i == power {
			return 0
		}
	}
	return i
}

func digitsEnd(text string, i int) int {
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i
}

// typed implements tableFormat for a line with all members in the expected order.
func (jsonlFormat) typed(r *typedReader, file *tableFile, text string) int {
	pos, last := 0, len(r.columns)-1
	for k, key := range file.table.keys {
		n := memberEnd(text[pos:], key, k == 0)
		if n == 0 || key == "" {
			return 0
		}
		pos += n
		ends := byte(',')
		if k == last {
			ends = '}'
		}
		if n = r.plain(k, text[pos:], ends); n == 0 {
			var cell column.Cell
			if cell, n = jsonCell(text[pos:]); n == 0 {
				return 0
			}
			r.other(k, r.rows, cell)
		}
		pos += n
	}
	if pos == len(text) || text[pos] != '}' {
		return 0
	}
	return rowEnd(text, pos+1)
}

// memberEnd returns the position of the value of the member key at the beginning of text, 0 if it is not there. It
// accepts the spacing of most programs: one blank or none after the colon and the comma.
func memberEnd(text, key string, first bool) int {
	const marks = `,"":` // around the name
	i := 1
	switch {
	case len(text) <= len(key)+len(marks), first && text[0] != '{', !first && text[0] != ',':
		return 0
	case text[1] == ' ' && !first:
		i = 2
	}
	if text[i] != '"' || text[i+1:i+1+len(key)] != key || !strings.HasPrefix(text[i+1+len(key):], `":`) {
		return 0
	}
	if i += len(key) + 3; i < len(text) && text[i] == ' ' {
		i++
	}
	return i
}

// jsonCell parses the value at the beginning of text, and returns its length; 0 if it is not one cell.
func jsonCell(text string) (cell column.Cell, end int) {
	line := text
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		line = text[:i]
	}
	q := quickJSON{text: line, f: func(_ int, _ string, c column.Cell) { cell = c }}
	if q.blank() == '{' || !q.value("", 0) || cell.Quoted && cell.Text == "" {
		return cell, 0
	}
	return cell, len(line) - len(q.text)
}
