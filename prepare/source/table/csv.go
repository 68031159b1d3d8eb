package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// csvFormat is comma-separated values (RFC 4180), also with other separators. The first row has the names of the
// columns.
type csvFormat struct{}

// OpenCSV opens files of comma-separated values.
func OpenCSV(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	return openTable(ctx, root, "csv", path, csvFormat{}, opts, selection)
}

// csvRows reads a CSV file. A line without quotes is a row as it is. Lines with quotes are parsed here and not by
// encoding/csv, which changes the line ends in quoted cells.
type csvRows struct {
	lines  lineReader
	comma  byte
	header []string
}

// open reads the header of a CSV file. The separator is the most frequent candidate in the first line, or the
// separator that Excel's line sep= names. UTF-16 and UTF-32 are refused with the command that converts them: read
// as bytes, most characters would be followed by NUL.
func (csvFormat) open(r io.Reader) (rowReader, error) {
	// Enough for the header of most tables; a longer one is cut for the choice of the separator only.
	first := make([]byte, 4096)
	n, err := io.ReadFull(r, first)
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil, emptyOr(err)
	}
	first = bytes.TrimPrefix(first[:n], []byte(byteOrderMark))
	if name := otherUnicode(first); name != "" {
		return nil, fmt.Errorf("is text in %s; save it in UTF-8, such as with iconv -f %[1]s -t UTF-8", name)
	}
	rows := &csvRows{lines: lineReader{r: io.MultiReader(bytes.NewReader(first), r)}, comma: delimiter(first)}
	if comma, ok := namedDelimiter(first); ok {
		rows.comma = comma
		if _, err := rows.lines.next(); err != nil {
			return nil, err
		}
	}
	var row tableRow
	if err = rows.next(&row); err != nil {
		return nil, emptyOr(err)
	}
	if row.err != nil {
		return nil, row.err
	}
	header := row.record
	if header == nil {
		header = strings.Split(row.text, string(rune(rows.comma)))
	}
	rows.header = header
	return rows, rows.checkHeader()
}

// otherUnicode returns the encoding that a byte order mark names; "" for UTF-8 and for text without a mark. UTF-32
// comes first, as its little-endian mark begins with the mark of UTF-16.
func otherUnicode(head []byte) string {
	for _, mark := range [][2]string{{"\xff\xfe\x00\x00", "UTF-32"}, {"\x00\x00\xfe\xff", "UTF-32"},
		{"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"}} {
		if bytes.HasPrefix(head, []byte(mark[0])) {
			return mark[1]
		}
	}
	return ""
}

// emptyOr rewords io.EOF as the error of an empty file.
func emptyOr(err error) error {
	if err == io.EOF {
		return errors.New("is empty; the first row names the columns")
	}
	return err
}

// delimiter returns the candidate for a separator that occurs most often in the first line; a comma if the line
// has no candidate.
func delimiter(head []byte) byte {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best, most := byte(','), bytes.Count(line, []byte(","))
	for _, d := range []byte("\t;|") {
		if n := bytes.Count(line, []byte{d}); n > most {
			best, most = d, n
		}
	}
	return best
}

// namedDelimiter returns the separator that a first line of Excel names, as in sep=;
func namedDelimiter(head []byte) (byte, bool) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	name, ok := bytes.CutPrefix(line, []byte("sep="))
	if ok = ok && len(name) == 1; !ok {
		return 0, false
	}
	return name[0], true
}

// checkHeader returns an error if the first row cannot be the names of columns. A column without a name, such as
// the index of pandas, gets the name column_1 by its number.
func (c *csvRows) checkHeader() error {
	seen := make(map[string]bool)
	if strings.Join(c.header, "") == "" {
		return errors.New("the first row is empty, and must name the columns")
	}
	for i := range c.header {
		name := strings.TrimSpace(c.header[i])
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		c.header[i] = name
		if strings.Contains(name, "\r") {
			return errors.New("its lines end in CR alone; give them LF, such as with tr '\\r' '\\n'")
		}
		if _, err := strconv.ParseFloat(name, 64); err == nil {
			return fmt.Errorf("column %d is called %q: the first row must name the columns", i+1, name)
		}
		if seen[name] {
			return fmt.Errorf("two columns are called %q", name)
		}
		seen[name] = true
	}
	return nil
}

// columns implements rowReader.
func (c *csvRows) columns() []string { return c.header }

// next implements rowReader. Empty lines are not rows.
func (c *csvRows) next(row *tableRow) error {
	for {
		line, err := c.lines.next()
		if err != nil {
			return err
		}
		// The line may end within a quoted cell, so the row has to be parsed to find its end.
		if strings.IndexByte(line, '"') >= 0 {
			*row = tableRow{at: c.lines.at, comma: c.comma}
			return c.quoted(row, line)
		}
		if c.row(line, c.lines.at, row) {
			return nil
		}
	}
}

// text implements rowReader.
func (c *csvRows) text() *lineReader { return &c.lines }

// separator implements rowReader.
func (c *csvRows) separator() byte {
	// From '-' to '9' are the minus sign, the point, the slash and the digits.
	if c.comma >= '-' && c.comma <= '9' || c.comma == '"' {
		return 0 // numbers and quoted cells contain these characters
	}
	return c.comma
}

// whole implements rowReader.
func (c *csvRows) whole(lines string) (end int, plain bool) {
	if strings.IndexByte(lines, '"') < 0 {
		return len(lines), true
	}
	return quotedRows(lines, c.comma), false
}

// part returns a reader of rows that whole has found. at is the number of the line before them.
func (c *csvRows) part(rows string, at int64) *csvRows {
	return &csvRows{lines: lineReader{block: rows, at: at, end: true}, comma: c.comma, header: c.header}
}

// quotedRows returns the length of the complete rows at the beginning of lines. It is 0 if no row is complete, or
// if a quote is in a place where none may be: next then finds the error.
func quotedRows(lines string, comma byte) int {
	row, pos := 0, 0 // where the present row begins, and what comes after the last cell in quotes
	for {
		i := strings.IndexByte(lines[pos:], '"')
		if i < 0 {
			return len(lines)
		}
		if n := strings.LastIndexByte(lines[pos:pos+i], '\n'); n >= 0 {
			row = pos + n + 1
		}
		// A quote within a cell that does not begin with a quote.
		if pos += i; pos > 0 && lines[pos-1] != comma && lines[pos-1] != '\n' {
			return 0
		}
		n := quotedEnd(lines[pos:])
		if n == 0 {
			return row // it continues in the next lines, or has no end
		}
		if pos += n; pos < len(lines) && lines[pos] != comma && lineEnd(lines[pos:]) == 0 {
			return 0
		}
	}
}

// row implements rowReader for a line without quotes. A wrong number of cells is counted now, and is the error of
// the row.
func (c *csvRows) row(line string, at int64, row *tableRow) bool {
	text := strings.TrimSuffix(line, "\n")
	if text = strings.TrimSuffix(text, "\r"); text == "" {
		return false
	}
	*row = tableRow{at: at, text: text, comma: c.comma}
	if n := strings.Count(text, string(rune(c.comma))) + 1; c.header != nil && n != len(c.header) {
		row.err = c.wrongCount(n)
	}
	return true
}

func (c *csvRows) wrongCount(n int) error {
	return source.ValueError("the row has %d columns, but the header has %d", n, len(c.header))
}

// quoted reads a row whose first line has quotes. The row may go on in further lines.
func (c *csvRows) quoted(row *tableRow, line string) error {
	q := quotedRow{lines: &c.lines, comma: c.comma, limit: maxRow, rest: line}
	for {
		cell, last, err := q.cell()
		if errors.Is(err, errBareQuote) {
			row.at, row.record, row.err = c.lines.at, nil, source.ValueError("%w", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.lines.at, err)
		}
		if row.record = append(row.record, cell); last {
			break
		}
	}
	if n := len(row.record); c.header != nil && n != len(c.header) {
		row.err = c.wrongCount(n)
	}
	return nil
}

var errBareQuote = errors.New(
	`a " in a cell that is not in quotes; put the cell in quotes, and "" for each that is in it`)

// quotedRow reads the cells of a row by the rules of RFC 4180.
type quotedRow struct {
	lines *lineReader
	comma byte
	limit int    // most bytes of a cell
	rest  string // unread part of the line
}

// cell reads the next cell, and reports whether it is the last of the row.
func (q *quotedRow) cell() (cell string, last bool, err error) {
	if strings.HasPrefix(q.rest, `"`) {
		if cell, err = q.inQuotes(); err != nil {
			return "", false, err
		}
		switch end := strings.TrimSuffix(strings.TrimSuffix(q.rest, "\n"), "\r"); {
		case end == "":
			return cell, true, nil
		case end[0] == q.comma:
			q.rest = q.rest[1:]
			return cell, false, nil
		}
		return "", false, fmt.Errorf(`text after a cell in quotes: %q; put "" for each " in a cell`, source.Clip(q.rest))
	}
	end := strings.IndexByte(q.rest, q.comma)
	if last = end < 0; last {
		cell = strings.TrimSuffix(strings.TrimSuffix(q.rest, "\n"), "\r")
	} else {
		cell, q.rest = q.rest[:end], q.rest[end+1:]
	}
	if strings.IndexByte(cell, '"') >= 0 {
		return "", false, errBareQuote
	}
	return cell, last, nil
}

// inQuotes reads a cell in quotes with its line ends. The size is limited, as without the closing quote the rest of
// the file would be one cell.
func (q *quotedRow) inQuotes() (string, error) {
	var text strings.Builder
	q.rest = q.rest[1:]
	for begin := q.lines.at; ; {
		i := strings.IndexByte(q.rest, '"')
		switch {
		case i < 0:
			text.WriteString(q.rest)
			if text.Len() > q.limit {
				return "", fmt.Errorf("a cell of more than %d bytes; is a quote missing?", q.limit)
			}
			var err error
			if q.rest, err = q.lines.next(); err == io.EOF {
				return "", fmt.Errorf(`the cell in quotes that begins in line %d has no end; is a " missing?`, begin)
			} else if err != nil {
				return "", err
			}
		case strings.HasPrefix(q.rest[i+1:], `"`):
			text.WriteString(q.rest[:i+1])
			q.rest = q.rest[i+2:]
		default:
			text.WriteString(q.rest[:i])
			q.rest = q.rest[i+1:]
			return text.String(), nil
		}
	}
}

// each implements tableFormat.
func (csvFormat) each(row *tableRow, f func(i int, column string, c column.Cell)) error {
	if row.err != nil {
		return row.err
	}
	header, rest := row.file.header, row.text
	for i, name := range header {
		if row.record != nil {
			f(i, name, column.Cell{Text: row.record[i]})
			continue
		}
		text := rest
		if end := strings.IndexByte(rest, row.comma); end >= 0 {
			text, rest = rest[:end], rest[end+1:]
		}
		f(i, name, column.Cell{Text: text})
	}
	return nil
}

// typed implements tableFormat. Plain numbers are parsed at once; any other cell is passed on as text.
func (csvFormat) typed(r *typedReader, file *tableFile, text string) int {
	comma, pos := file.rows.(*csvRows).separator(), 0
	if comma == 0 {
		return 0
	}
	for k, last := 0, len(r.columns)-1; k <= last; k++ {
		ends := comma
		if k == last {
			ends = '\n'
		}
		n := r.plain(k, text[pos:], ends)
		if n == 0 {
			cell := ""
			if pos < len(text) && text[pos] == '"' {
				cell, n = quotedCell(text[pos:])
			} else {
				n = csvCell(text[pos:], comma)
				cell = text[pos : pos+n]
			}
			// The row has fewer cells than columns, or text after a closing quote.
			if k < last && (pos+n == len(text) || text[pos+n] != comma) {
				return 0
			}
			r.other(k, r.rows, column.Cell{Text: cell})
		}
		if pos += n; k < last {
			pos++
		}
	}
	return rowEnd(text, pos)
}

// csvCell returns the length of the cell at the beginning of text, which ends before a separator, a line end or the
// end of text.
func csvCell(text string, comma byte) int {
	for i := range len(text) {
		switch c := text[i]; {
		case c == comma:
			return i
		case c == '\n' && i > 0 && text[i-1] == '\r':
			return i - 1
		case c == '\n':
			return i
		}
	}
	if strings.HasSuffix(text, "\r") {
		return len(text) - 1
	}
	return len(text)
}
