package source

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// csvFormat reads comma-separated values (RFC 4180), also with tabs or semicolons. The
// first row names the columns.
type csvFormat struct{}

func openCSV(ctx context.Context, path string, opts Options, wanted []Wanted) (Source, error) {
	return openTable(ctx, "csv", path, csvFormat{}, opts, wanted)
}

// maxRow bounds the memory that a row can take, as a missing quote makes one of all that
// follows.
const maxRow = 256 << 20

// byteOrderMark is what programs on Windows begin UTF-8 with.
const byteOrderMark = "\xef\xbb\xbf"

// csvRows reads one file.
type csvRows struct {
	r      *csv.Reader
	limit  *rowLimit
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
	rows := &csvRows{limit: &rowLimit{r: io.MultiReader(bytes.NewReader(first), r), left: maxRow}}
	rows.r = csv.NewReader(rows.limit)
	rows.r.Comma = delimiter(first)
	rows.r.ReuseRecord = false
	if rows.header, err = rows.r.Read(); err != nil {
		return nil, emptyOr(err)
	}
	return rows, rows.checkHeader()
}

func emptyOr(err error) error {
	if err == io.EOF {
		return errors.New("is empty; the first row names the columns")
	}
	return err
}

// delimiter returns the one that the first line has most of.
func delimiter(head []byte) rune {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best, most := ',', bytes.Count(line, []byte(","))
	for _, d := range "\t;|" {
		if n := bytes.Count(line, []byte(string(d))); n > most {
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

func (c *csvRows) next() (tableRow, error) {
	c.limit.left = maxRow
	record, err := c.r.Read()
	line, _ := 0, 0
	if len(record) > 0 {
		line, _ = c.r.FieldPos(0)
	}
	row := csvRow{header: c.header, record: record, at: int64(line)}
	if errors.Is(err, csv.ErrFieldCount) {
		row.err = fmt.Errorf("%w: %d columns where the header has %d", ErrValue, len(record), len(c.header))
		return row, nil
	}
	var bad *csv.ParseError
	if errors.As(err, &bad) && errors.Is(err, csv.ErrBareQuote) { // the reader is behind its line
		row.at, row.err = int64(bad.Line), fmt.Errorf(`%w: a " in a cell that is not in quotes; put the cell in quotes, and "" for each that is in it`, ErrValue)
		return row, nil
	}
	return row, err
}

// csvRow is a row of a csvRows.
type csvRow struct {
	header, record []string
	at             int64
	err            error
}

func (r csvRow) line() int64 { return r.at }

func (r csvRow) each(f func(column string, c cell)) error {
	if r.err != nil {
		return r.err
	}
	for i, name := range r.header {
		f(name, cell{text: r.record[i]})
	}
	return nil
}

// rowLimit is a Reader that stops when one row takes too much.
type rowLimit struct {
	r    io.Reader
	left int
}

func (l *rowLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= n; l.left < 0 {
		return n, fmt.Errorf("a row of more than %d bytes; is a quote missing?", maxRow)
	}
	return n, err
}
