package inspect

import (
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/internal/shell"
)

// table aligns rows of cells, two spaces apart. A column whose letter in align is 'r' is
// flush right, others flush left.
type table struct {
	align  string
	indent int
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the rows, each with a newline and without trailing spaces.
func (t *table) String() string {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		line := strings.Repeat(" ", t.indent)
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

func (t *table) right(column int) bool { return column < len(t.align) && t.align[column] == 'r' }

// widths leaves out what ends a row and is flush left: it may reach over the columns that
// other rows have there.
func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(row)-1 || t.right(i) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	return widths
}

// printable makes text from a file safe to print: a control character in it could move the
// cursor or start an escape sequence of the terminal.
func printable(s string) string { return shell.Line(s) }

// shorten cuts s to at most n runes.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
