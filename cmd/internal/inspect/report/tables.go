package report

import (
	"strconv"

	"github.com/penstock/penstock/cmd/internal/inspect/stats"
)

// column is the head of a column; one of numbers stands at the right.
type column struct {
	title  string
	number bool
}

// openTable begins a table that scrolls where it is wider than the page. A label is for those who do not see it.
func openTable(b *body, label string, columns ...column) {
	b.Add("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n<thead><tr>", label)
	for _, c := range columns {
		class := markup("")
		if c.number {
			class = ` class="n"`
		}
		b.Add(`<th scope="col"{}>{}</th>`, class, c.title)
	}
	b.Add("</tr></thead>\n<tbody>")
}

func closeTable(b *body) { b.Add("</tbody>\n</table></div>\n") }

// Largest numbers of rows that the tables of a report have.
const (
	shownLabels  = 60
	shownClasses = 100
	evenClasses  = 12 // of as many records each; more are summed up in a sentence
)

func labelText(l stats.Label) string {
	if l.Name != "" {
		return l.Name
	}
	return strconv.FormatInt(l.Value, 10)
}
