package table

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source/column"
)

// recordsOf returns the rows of a CSV file, cells with | between, or the error of a row.
func recordsOf(t *testing.T, text string) (list []string) {
	t.Helper()
	rows, err := csvFormat{}.open(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for {
		var row tableRow
		if err := rows.next(&row); err != nil {
			return list
		}
		row.file = &tableFile{header: rows.columns()}
		var cells []string
		err := csvFormat{}.each(&row, func(_ int, _ string, c column.Cell) { cells = append(cells, c.Text) })
		if err != nil {
			cells = []string{err.Error()}
		}
		list = append(list, strings.Join(cells, "|"))
	}
}

// Cells in quotes keep their line ends, as in Python's csv and in pandas.
func TestQuotedCells(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b\r\n\"x\r\ny\",1\r\n":              {"x\r\ny|1"},
		"a,b\n\"x\ny\",\"1\r\n\r\n\"":          {"x\ny|1\r\n\r\n"},
		"a,b\n\"x\"\"\r\n\",1\n2,\"\"\n":       {"x\"\r\n|1", "2|"},
		"a,b\n\"x\",\"y\"\r\n\n\"z\",\"\"\"\"": {"x|y", "z|\""},
		"a,b\n1,\"2\",3\n4,5\n":                {"the row has 3 columns, but the header has 2", "4|5"},
		"a,b\n1,x\"y\n4,5\n":                   {errBareQuote.Error(), "4|5"},
	} {
		if got := recordsOf(t, text); strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Excel names the delimiter in a line before the header.
func TestNamedDelimiter(t *testing.T) {
	for _, text := range []string{"sep=;\na;b\n1,5;2\n", "\xef\xbb\xbfsep=;\r\na;b\r\n1,5;2\r\n"} {
		if got := recordsOf(t, text); len(got) != 1 || got[0] != "1,5|2" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestOtherUnicode(t *testing.T) {
	for mark, want := range map[string]string{"\xff\xfea\x00": "UTF-16", "\xfe\xff\x00a": "UTF-16", "\xff\xfe\x00\x00a\x00\x00\x00": "UTF-32", "\x00\x00\xfe\xff\x00\x00\x00a": "UTF-32"} {
		if _, err := (csvFormat{}).open(strings.NewReader(mark)); err == nil || !strings.Contains(err.Error(), "iconv -f "+want+" -t") {
			t.Errorf("%q: error %v", mark, err)
		}
	}
}

func TestCellsHaveALimit(t *testing.T) {
	q := quotedRow{lines: &lineReader{r: strings.NewReader("")}, rest: `"0123456789`, limit: 5}
	if _, _, err := q.cell(); err == nil || !strings.Contains(err.Error(), "is a quote missing?") {
		t.Errorf("error %v", err)
	}
}
