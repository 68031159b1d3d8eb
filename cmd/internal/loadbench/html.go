package loadbench

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// section is a table of the page.
type section struct {
	Title   string
	Head    []string
	Rows    [][]string
	Remarks []string
	Figures []template.HTML
}

// WriteHTML writes the report as one page that fetches nothing.
func (r *Report) WriteHTML(path string) error {
	var head strings.Builder
	r.head(&head)
	data := struct {
		Name        string
		Head        []string
		Doctor      string
		Interrupted bool
		Sections    []section
	}{Name: r.Dataset.Name, Head: lines(head.String()), Doctor: r.Doctor, Interrupted: r.Interrupted}
	for i := range r.Tables {
		s, err := r.Tables[i].section()
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		data.Sections = append(data.Sections, s)
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, data); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return cli.WriteFile(path, func(w io.Writer) error { _, err := b.WriteTo(w); return err })
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func (t *Table) section() (section, error) {
	g := t.grid()
	s := section{Title: t.Title, Head: g[0], Rows: g[1:]}
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
func inline(svg, title string) template.HTML {
	if at := strings.Index(svg, "<svg"); at > 0 {
		svg = svg[at:]
	}
	svg = strings.Replace(svg, "<svg", `<svg role="img" aria-label="`+template.HTMLEscapeString(title)+`"`, 1)
	return template.HTML(strings.ReplaceAll(svg, "#000000", "currentColor"))
}
