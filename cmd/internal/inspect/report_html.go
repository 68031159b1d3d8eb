package inspect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/store"
)

//go:embed report.html.tmpl
var reportPage string

// reportTemplate escapes whatever comes from a dataset.
var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"count":     cli.Count,
	"bytes":     cli.Bytes,
	"limit":     limit,
	"decimal":   decimal,
	"histogram": histogramPlot,
	"lengths":   lengthsPlot,
	"bar":       barPlot,
	"steps":     func(r *store.Recipe) []step { return steps(r.Transforms) },
	"join":      func(list []string) string { return strings.Join(list, ", ") },
	"shape":     Field.shapeText,
	"json":      indented,
	"share":     func(n, all int64) string { return strconv.FormatFloat(100*float64(n)/float64(max(1, all)), 'f', 1, 64) },
	"first":     func(n int, labels []Label) []Label { return labels[:min(n, len(labels))] },
	"most":      mostRecords,
	"version":   cli.Version,
}).Parse(reportPage))

// HTML writes the report as one page that fetches nothing and runs no script.
func (r *Report) HTML(w io.Writer) error { return reportTemplate.Execute(w, r) }

// Name is what the page is called.
func (r *Report) Name() string { return printable(filepath.Base(filepath.Clean(r.Summary.Path))) }

// Facts are what stands at the top of the page: names and values.
func (r *Report) Facts() [][2]string {
	s := r.Summary
	facts := [][2]string{{"records", cli.Count(r.Stats.Records)}, {"fields", strconv.Itoa(len(s.Fields))}, {"size", s.sizeText()}, {"format", s.formatText()}}
	if r.Stats.Split != "" {
		facts = append(facts, [2]string{"split", printable(r.Stats.Split)})
	}
	if s.Generation > 1 {
		facts = append(facts, [2]string{"generation", strconv.Itoa(s.Generation)})
	}
	if s.ID != "" {
		facts = append(facts, [2]string{"id", s.ID})
	}
	return facts
}

// Failed counts the checks that are not good.
func (r *Report) Failed() (n int) {
	for _, c := range r.Checks {
		if !c.Good {
			n++
		}
	}
	return n
}

// Record writes what a record of a field takes.
func (r *Report) Record(f Field) string { return r.Summary.recordText(f) }

func mostRecords(labels []Label) (most int64) {
	for _, l := range labels {
		most = max(most, l.Records)
	}
	return most
}

func indented(v any) (string, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return string(text), nil
}
