package loadbench

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/htmlpage"
)

//go:embed page.css
var pageStyle string

// section is a table of the page.
type section struct {
	Title   string
	Head    []string
	Rows    [][]string
	Remarks []string
	Figures []htmlpage.HTML
}

// WriteHTML writes the report as one page that fetches nothing.
func (r *Report) WriteHTML(path string) error {
	var head strings.Builder
	r.head(&head)
	b := new(htmlpage.Body)
	b.Add("<h1>How fast {} is loaded</h1>\n", r.Dataset.Name)
	for _, line := range lines(head.String()) {
		b.Add("<p class=\"note\">{}</p>\n", line)
	}
	if r.Interrupted {
		b.Add("<p class=\"mark bad\">The run was interrupted: these tables are partial.</p>\n")
	}
	if r.Bottleneck != "" {
		b.Add("<p class=\"mark\">{}</p>\n", r.Bottleneck)
	}
	for i := range r.Tables {
		s, err := r.Tables[i].section()
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		s.write(b)
	}
	return cli.WriteFile(path, func(w io.Writer) error {
		return htmlpage.Write(w, "loadbench: "+r.Dataset.Name, htmlpage.HTML(pageStyle), b)
	})
}

func (s *section) write(b *htmlpage.Body) {
	b.Add("<section>\n<h2>{}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "+
		"aria-label=\"{}\"><table>\n<thead><tr>", s.Title, s.Title)
	for i, cell := range s.Head {
		b.Add(`<th scope="col"{}>{}</th>`, numberClass(i), cell)
	}
	b.Add("</tr></thead>\n<tbody>")
	for _, row := range s.Rows {
		b.Add("<tr>")
		for i, cell := range row {
			b.Add("<td{}>{}</td>", numberClass(i), cell)
		}
		b.Add("</tr>\n")
	}
	b.Add("</tbody></table></div>\n")
	for _, line := range s.Remarks {
		b.Add("<p class=\"note\">{}</p>\n", line)
	}
	b.Add("<div class=\"figures\">")
	for _, f := range s.Figures {
		b.Add("<figure>{}</figure>\n", f)
	}
	b.Add("</div>\n</section>\n")
}

// numberClass is the class of a column: all but the first are numbers.
func numberClass(i int) htmlpage.HTML {
	if i == 0 {
		return ""
	}
	return ` class="n"`
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func (t *Table) section() (section, error) {
	g := t.grid()
	s := section{Title: t.Title, Head: g.Rows[0], Rows: g.Rows[1:]}
	var remarks strings.Builder
	t.remarks(&remarks)
	if remarks.Len() > 0 {
		s.Remarks = lines(remarks.String())
	}
	figures, err := t.figures()
	if err != nil {
		return s, err
	}
	for _, f := range figures {
		text, err := f.svg()
		if err != nil {
			return s, err
		}
		s.Figures = append(s.Figures, inline(text, f.title))
	}
	return s, nil
}

// inline returns an SVG document as an element of a page, black being the page's ink. The
// text in it, which names rows, was escaped when it was drawn.
func inline(svg, title string) htmlpage.HTML {
	if at := strings.Index(svg, "<svg"); at > 0 {
		svg = svg[at:]
	}
	svg = strings.Replace(svg, "<svg", `<svg role="img" aria-label="`+htmlpage.Escape(title)+`"`, 1)
	return htmlpage.HTML(strings.ReplaceAll(svg, "#000000", "currentColor"))
}
