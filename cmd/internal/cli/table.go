package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/sys/shell"
)

// Bar draws value as a share of largest: a bar of at most width characters, in steps of an eighth
// of a character. A positive value has at least one step, so that rare values do not look absent.
func Bar(value, largest int64, width int) string {
	if value <= 0 || largest <= 0 {
		return ""
	}
	eighths := max(1, int(float64(value)/float64(largest)*float64(8*width)+0.5))
	full := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return full
}

// BarWidth is the usual width of a Bar, in characters.
const BarWidth = 32

// Table aligns rows of cells, with two spaces between columns. A column whose letter in Align is
// 'r' is flush right; others are flush left. Indent spaces stand before each row. A cell of more
// than Wide characters, unless Wide is 0, does not widen its column: only the rest of its own row
// moves to the right. Cells are single lines, which Add escapes.
type Table struct {
	Align  string
	Indent int
	Wide   int
	Rows   [][]string
}

// Add appends a row. Control characters in cells are escaped.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = shell.Line(cell)
	}
	t.Rows = append(t.Rows, row)
}

// String returns the rows, each with a newline and without trailing spaces.
func (t *Table) String() string {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.Rows {
		line := strings.Repeat(" ", t.Indent)
		for i, cell := range row {
			pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			if t.right(i) {
				line += pad + cell + "  "
			} else {
				line += cell + pad + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// right reports whether a column is flush right.
func (t *Table) right(column int) bool { return column < len(t.Align) && t.Align[column] == 'r' }

// widths returns the width of each column in characters. The last cell of a row does not count if
// it is flush left: it may reach over the columns that other rows have there.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.Rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			n := utf8.RuneCountInString(cell)
			if (i < len(row)-1 || t.right(i)) && (t.Wide == 0 || n <= t.Wide) {
				widths[i] = max(widths[i], n)
			}
		}
	}
	return widths
}

// Parts splits the table into tables of at most width characters, each with the first column, which
// names the rows. A part has at least one more column, even if it is too wide. A width of 0 means
// no limit.
func (t *Table) Parts(width int) (all []*Table) {
	widths := t.widths()
	for from := 1; from < len(widths); {
		to, used := from, t.Indent+widths[0]
		for to < len(widths) && (to == from || used+2+widths[to] <= width || width <= 0) {
			used += 2 + widths[to]
			to++
		}
		align := t.Align + strings.Repeat("l", max(0, to-len(t.Align)))
		part := &Table{Indent: t.Indent, Align: align[:1] + align[from:to]}
		for _, row := range t.Rows {
			cells := make([]string, 1+to-from)
			cells[0] = row[0]
			copy(cells[1:], row[min(from, len(row)):])
			part.Add(cells...)
		}
		all, from = append(all, part), to
	}
	return all
}

// Markdown returns the table in the syntax of GitHub Markdown. The first row has the heads of the
// columns, except for the first column, whose head is name. "|" in cells is escaped.
func (t *Table) Markdown(name string) string {
	head := append([]string{name}, t.Rows[0][1:]...)
	rule := make([]string, len(head))
	for i := range rule {
		if rule[i] = "---"; t.right(i) {
			rule[i] += ":"
		}
	}
	var b strings.Builder
	for _, row := range slices.Concat([][]string{head, rule}, t.Rows[1:]) {
		cells := make([]string, len(head))
		copy(cells, row)
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// Shorten cuts s to at most n runes, the last of which is then an ellipsis.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
