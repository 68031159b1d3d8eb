package table

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/cmd/internal/source/column"
)

// csvFormat reads comma-separated values (RFC 4180), also with tabs or semicolons. The
// first row names the columns.
type csvFormat struct{}

func OpenCSV(ctx context.Context, path string, opts source.Options, selection []column.Selection) (source.Source, error) {
	return openTable(ctx, "csv", path, csvFormat{}, opts, selection)
}

// maxRow bounds the memory that a row can take, as a missing quote makes one of all that
// follows.
const maxRow = 256 << 20

// csvRows reads one file. Lines without quotes are rows as they stand; others go through
// encoding/csv, which gets one line at a time, so that it never reads ahead.
type csvRows struct {
	lines  lineReader
	r      *csv.Reader
	feed   *lineFeeder
	comma  byte
	header []string
}

func (csvFormat) open(r io.Reader) (rowReader, error) {
	first := make([]byte, 4096)
	n, err := io.ReadFull(r, first)
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil, emptyOr(err)
	}
	first = bytes.TrimPrefix(first[:n], []byte(byteOrderMark))
	if bytes.HasPrefix(first, []byte("\xff\xfe")) || bytes.HasPrefix(first, []byte("\xfe\xff")) {
		return nil, errors.New("is text in UTF-16; save it in UTF-8, such as with iconv -f UTF-16 -t UTF-8")
	}
	rows := &csvRows{lines: lineReader{r: io.MultiReader(bytes.NewReader(first), r)}, comma: delimiter(first)}
	rows.feed = &lineFeeder{lines: &rows.lines}
	rows.r = csv.NewReader(rows.feed)
	rows.r.Comma, rows.r.FieldsPerRecord = rune(rows.comma), -1
	var row tableRow
	if err = rows.next(&row); err != nil {
		return nil, emptyOr(err)
	}
	if row.err != nil {
		return nil, row.err
	}
	if rows.header = row.record; rows.header == nil {
		rows.header = strings.Split(row.text, string(rune(rows.comma)))
	}
	rows.r.FieldsPerRecord = len(rows.header)
	return rows, rows.checkHeader()
}

func emptyOr(err error) error {
	if err == io.EOF {
		return errors.New("is empty; the first row names the columns")
	}
	return err
}

// delimiter returns the one that the first line has most of.
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

// checkHeader makes sure that the first row names the columns. One without a name, as pandas
// gives to its index, is called by its number.
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

// plain implements rowReader.
func (c *csvRows) plain(lines string) bool { return strings.IndexByte(lines, '"') < 0 }

// row implements rowReader, for a line without quotes.
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
	return source.ValueError("the row has %d columns, the header %d", n, len(c.header))
}

// quoted reads a row that begins with a line that has quotes.
func (c *csvRows) quoted(row *tableRow, line string) (err error) {
	c.feed.begin(line)
	row.record, err = c.r.Read()
	var bad *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		row.err = c.wrongCount(len(row.record))
		return nil
	case errors.As(err, &bad) && errors.Is(err, csv.ErrBareQuote): // the reader is behind its line
		row.at, row.err = c.lines.at, source.ValueError(`a " in a cell that is not in quotes; put the cell in quotes, and "" for each that is in it`)
		return nil
	case errors.As(err, &bad): // which counts the lines that it was given
		bad.StartLine, bad.Line = int(row.at), int(c.lines.at)
	}
	return err
}

// lineFeeder gives a csv.Reader a line at each Read.
type lineFeeder struct {
	lines *lineReader
	rest  string // of the line
	left  int    // bytes that the row may still take
}

// begin makes line the next.
func (f *lineFeeder) begin(line string) { f.rest, f.left = line, maxRow }

// Read implements io.Reader.
func (f *lineFeeder) Read(p []byte) (n int, err error) {
	if f.rest == "" {
		if f.rest, err = f.lines.next(); err != nil {
			return 0, err
		}
	}
	n = copy(p, f.rest)
	f.rest = f.rest[n:]
	if f.left -= n; f.left < 0 {
		return n, fmt.Errorf("a row of more than %d bytes; is a quote missing?", maxRow)
	}
	return n, nil
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
