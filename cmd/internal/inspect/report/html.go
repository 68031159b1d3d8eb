package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"

	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/cmd/internal/inspect/summary"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/version"
)

//go:embed report.css
var style string

// HTML writes the report as one page, which fetches nothing and runs no script: it can be mailed,
// and shown where the dataset is not.
func (r *Report) HTML(w io.Writer) error {
	b := new(body)
	r.writeHeader(b)
	r.writeChecks(b)
	r.writeFields(b)
	r.writeValues(b)
	r.writeSamples(b)
	r.writeRecords(b)
	r.writeSplits(b)
	r.writeSkipped(b)
	if err := r.writeRecipe(b); err != nil {
		return err
	}
	b.Add("<footer>Made by penstock inspect report, {}. One file: it fetches nothing and runs no script.</footer>",
		version.Version())
	return writePage(w, r.Name()+": dataset report", markup(style), b)
}

// writeHeader writes the title, the facts, and links to the sections that exist.
func (r *Report) writeHeader(b *body) {
	b.Add("<header>\n<h1>{}</h1>\n<dl class=\"facts\">", r.Name())
	for _, f := range r.Facts() {
		b.Add("<div><dt>{}</dt><dd>{}</dd></div>", f[0], f[1])
	}
	b.Add("</dl>\n<nav aria-label=\"Sections\">")
	for _, s := range []struct {
		id, title string
		there     bool
	}{
		{"checks", "Checks", true},
		{"fields", "Fields", true},
		{"values", "Values", true},
		{"samples", "Samples", len(r.Albums) > 0},
		{"records", "Records", true},
		{"splits", "Splits", len(r.Summary.Splits) > 0},
		{"skipped", "Skipped", len(r.Summary.Skipped) > 0},
		{"recipe", "Recipe", r.Summary.Recipe != nil},
	} {
		if s.there {
			b.Add("<a href=\"#{}\">{}</a> ", s.id, s.title)
		}
	}
	b.Add("</nav>\n</header>\n")
}

// writeChecks writes the checks and their results, as a list in which the style sheet marks bad
// results.
func (r *Report) writeChecks(b *body) {
	b.Add("<section id=\"checks\"><h2>Checks</h2>\n<ul class=\"checks\">")
	for _, c := range r.Checks {
		if c.Good {
			b.Add("<li>{}</li>", c.Text)
		} else {
			b.Add(`<li class="bad">{}</li>`, c.Text)
		}
	}
	b.Add("</ul>\n</section>\n")
}

// writeFields writes the table of fields.
func (r *Report) writeFields(b *body) {
	b.Add("<section id=\"fields\"><h2>Fields</h2>\n")
	openTable(b, "Fields", column{"name", false}, column{"type", false}, column{"shape", false}, column{"a record", true},
		column{"all", true})
	for _, f := range r.Summary.Fields {
		b.Add(`<tr><td class="name">{}</td><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td></tr>`,
			f.Name, f.DType, f.ShapeText(), r.Summary.RecordText(f), units.Bytes(f.Bytes))
	}
	closeTable(b)
	b.Add("</section>\n")
}

// writeValues writes the statistics of each field, with plots.
func (r *Report) writeValues(b *body) {
	b.Add("<section id=\"values\"><h2>Values</h2>\n")
	for _, f := range r.Stats.Fields {
		b.Add("<h3>{} <small>{}", f.Name, f.DType)
		if f.ClassField != "" {
			b.Add(", by {}", f.ClassField)
		}
		b.Add("</small></h3>\n")
		switch {
		case len(f.Labels) > 0:
			unit := "record"
			if f.Ragged {
				unit = "row"
			}
			writeLabels(b, f.Labels, unit)
		case len(f.Channels) > 0:
			b.Add("{}\n", histogramPlot(f))
			writeChannels(b, f)
		}
		if n := f.Lengths; n != nil {
			b.Add("<p class=\"note\">{}: {} to {}, mean {}, std {}</p>\n",
				f.LengthName(), cli.Number(n.Min), cli.Number(n.Max), cli.Decimal(n.Mean), cli.Decimal(n.Std))
		}
		b.Add("{}\n", lengthsPlot(f))
		if n := len(f.Classes); n > 1 && n <= shownClasses {
			writeClasses(b, f)
		}
	}
	b.Add("</section>\n")
}

// writeLabels writes how many units, which are records or rows, each label has. Many labels with
// equal counts become one sentence.
func writeLabels(b *body, labels []stats.Label, unit string) {
	largest, smallest := int64(0), labels[0].Records
	for _, l := range labels {
		largest, smallest = max(largest, l.Records), min(smallest, l.Records)
	}
	if largest == smallest && len(labels) > evenClasses {
		b.Add("<p>{} classes of {} each.</p>\n", units.Count(int64(len(labels))), units.Counted(largest, unit))
		return
	}
	b.Add("<table class=\"bars\"><thead><tr><th scope=\"col\">label</th><th scope=\"col\" class=\"n\">{}</th>"+
		"<th scope=\"col\"><span class=\"note\">share of the largest</span></th></tr></thead>\n<tbody>", unit+"s")
	for _, l := range labels[:min(len(labels), shownLabels)] {
		b.Add(`<tr><td class="name">{}</td><td class="n">{}</td><td class="grow">{}</td></tr>`, labelText(l),
			units.Count(l.Records), bar(l.Records, largest))
	}
	b.Add("</tbody></table>\n")
	if len(labels) > shownLabels {
		b.Add("<p class=\"note\">The first {} of {}; penstock inspect stats --classes 0 lists all.</p>\n", shownLabels,
			len(labels))
	}
}

// writeChannels writes the statistics of each channel.
func writeChannels(b *body, f stats.FieldStats) {
	openTable(b, "Statistics of "+f.Name, column{"channel", false}, column{"min", true}, column{"max", true},
		column{"mean", true}, column{"std", true}, column{"not finite", true})
	for _, c := range f.Channels {
		b.Add(`<tr><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>`,
			c.Name, cli.Number(c.Min), cli.Number(c.Max), cli.Decimal(c.Mean), cli.Decimal(c.Std), units.Count(c.NonFinite))
	}
	closeTable(b)
}

// writeClasses writes mean and standard deviation by class, folded up.
func writeClasses(b *body, f stats.FieldStats) {
	b.Add("<details><summary>{} by {}: mean (std)</summary>\n", f.Name, f.ClassField)
	columns := []column{{"label", false}, {"records", true}}
	for _, c := range f.Channels {
		columns = append(columns, column{c.Name, true})
	}
	openTable(b, f.Name+" by class", columns...)
	for _, c := range f.Classes {
		b.Add(`<tr><td class="name">{}</td><td class="n">{}</td>`, labelText(c.Label), units.Count(c.Records))
		for _, m := range c.Channels {
			b.Add(`<td class="n">{} ({})</td>`, cli.Decimal(m.Mean), cli.Decimal(m.Std))
		}
		b.Add("</tr>")
	}
	closeTable(b)
	b.Add("</details>\n")
}

// writeLegend writes the colors of the classes that are drawn on pictures.
func (r *Report) writeLegend(b *body) {
	b.Add("<p class=\"legend\">")
	for _, e := range r.Legend {
		c := render.Color(e.Color)
		b.Add(`<span><svg viewBox="0 0 1 1" aria-hidden="true"><rect width="1" height="1" fill="{}"/></svg>{}</span>`,
			fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B), e.Name)
	}
	b.Add("</p>\n")
}

// writeSamples writes the albums.
func (r *Report) writeSamples(b *body) {
	if len(r.Albums) == 0 {
		return
	}
	b.Add("<section id=\"samples\"><h2>Samples</h2>\n<p class=\"note\">Brightness: {}. Extremes and near-duplicates are "+
		"of {}.</p>\n", r.Pictures, r.Scanned)
	class := "album"
	if r.Legend != nil {
		class = "album marked"
		r.writeLegend(b)
	}
	for _, a := range r.Albums {
		b.Add("<h3>{}", a.Title)
		if a.Note != "" {
			b.Add(" <small>{}</small>", a.Note)
		}
		b.Add("</h3>\n<ul class=\"{}\">", class)
		for _, t := range a.Thumbnails {
			class := markup("")
			if t.Pixels {
				class = ` class="pixels"`
			}
			id, file := new(body), new(body)
			if t.ID != "" {
				id.Add(` id="{}"`, t.ID)
			}
			if t.Source != "" {
				file.Add(`<span class="file">{}</span>`, t.Source)
			}
			b.Add(`<li><figure class="shot"{}><img src="{}" alt="{}"{}><figcaption><b>#{}</b> {}{}</figcaption></figure></li>`,
				id.HTML(), t.Src, t.Text, class, t.Record, t.Caption, file.HTML())
		}
		b.Add("</ul>\n")
	}
	r.writePairs(b)
	b.Add("</section>\n")
}

// writePairs writes the list of near-duplicates, with links to the pictures that the page has.
func (r *Report) writePairs(b *body) {
	if len(r.Pairs) == 0 {
		return
	}
	b.Add("<details><summary>Pairs of near-duplicates</summary>\n")
	openTable(b, "Pairs of near-duplicates", column{"difference", true}, column{"record", false},
		column{"looks like", false})
	for _, p := range r.Pairs[:min(len(r.Pairs), pairsListed)] {
		b.Add(`<tr><td class="n">{}</td>`, cli.Decimal(p.Distance))
		for k, record := range p.Records {
			number := new(body)
			if p.Links[k] != "" {
				number.Add(`<a href="{}">#{}</a>`, p.Links[k], record)
			} else {
				number.Add("#{}", record)
			}
			b.Add(`<td class="wide">{} {} {}</td>`, number.HTML(), p.Splits[k], p.Sources[k])
		}
		b.Add("</tr>")
	}
	closeTable(b)
	if n := len(r.Pairs); n > pairsListed {
		b.Add("<p class=\"note\">The first {} of {}; penstock inspect report --json lists all.</p>\n", pairsListed,
			units.Count(int64(n)))
	}
	b.Add("</details>\n")
}

// writeRecords writes the values of some records.
func (r *Report) writeRecords(b *body) {
	b.Add("<section id=\"records\"><h2>Records</h2>\n")
	columns := []column{{"record", true}}
	for _, f := range r.Stats.Fields {
		columns = append(columns, column{f.Name, false})
	}
	openTable(b, "Values of some records", columns...)
	for _, row := range r.Rows {
		b.Add(`<tr><td class="n" title="{}">{}</td>`, row.Source, row.Record)
		for _, v := range row.Values {
			b.Add(`<td class="wide">{}</td>`, v.String())
		}
		b.Add("</tr>")
	}
	closeTable(b)
	b.Add("</section>\n")
}

// writeSplits writes the sizes of the splits.
func (r *Report) writeSplits(b *body) {
	if len(r.Summary.Splits) == 0 {
		return
	}
	all := r.Summary.Records
	b.Add("<section id=\"splits\"><h2>Splits</h2>\n<table class=\"bars\"><thead><tr><th scope=\"col\">split</th><th " +
		"scope=\"col\" class=\"n\">records</th>" +
		"<th scope=\"col\" class=\"n\">share</th><th scope=\"col\"></th></tr></thead>\n<tbody>")
	for _, s := range r.Summary.Splits {
		share := strconv.FormatFloat(100*float64(s.Records)/float64(max(1, all)), 'f', 1, 64)
		b.Add(`<tr><td class="name">{}</td><td class="n">{}</td><td class="n">{} %</td><td class="grow">{}</td></tr>`,
			s.Name, units.Count(s.Records), share, bar(s.Records, all))
	}
	b.Add("</tbody></table>\n</section>\n")
}

// writeSkipped writes why samples were skipped.
func (r *Report) writeSkipped(b *body) {
	if len(r.Summary.Skipped) == 0 {
		return
	}
	b.Add("<section id=\"skipped\"><h2>Skipped samples</h2>\n")
	openTable(b, "Skipped samples", column{"samples", true}, column{"reason", false}, column{"for example", false})
	for _, s := range r.Reasons {
		b.Add(`<tr><td class="n">{}</td><td class="wide">{}</td><td class="wide">{}</td></tr>`, units.Count(s.Count),
			s.Text, s.Example)
	}
	closeTable(b)
	b.Add("</section>\n")
}

// writeRecipe writes how the dataset was made: the transforms, and the whole recipe folded up.
func (r *Report) writeRecipe(b *body) error {
	recipe := r.Summary.Recipe
	if recipe == nil {
		return nil
	}
	text, err := json.MarshalIndent(recipe, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	b.Add("<section id=\"recipe\"><h2>Recipe</h2>\n<p>{}", recipe.Program)
	if recipe.Decoder != "" {
		b.Add(", decoder {}", recipe.Decoder)
	}
	if s := r.Summary.Source; s != nil {
		b.Add("; from {} “{}”, {} samples, {}", s.Kind, s.Name, units.Count(s.Samples), units.Bytes(s.Bytes))
	}
	b.Add("</p>\n")
	if steps := summary.Steps(recipe.Transforms); len(steps) > 0 {
		b.Add("<ol>")
		for _, s := range steps {
			b.Add("<li><b>{}</b> {}</li>", s.Op, strings.Join(s.Params, ", "))
		}
		b.Add("</ol>\n")
	}
	b.Add("<details><summary>As penstock preprocess --pipeline reads it</summary><pre "+
		"tabindex=\"0\">{}</pre></details>\n</section>\n", string(text))
	return nil
}

// Name is the page's title.
func (r *Report) Name() string { return shell.Line(filepath.Base(filepath.Clean(r.Summary.Path))) }

// Facts returns the names and values at the top of the page.
func (r *Report) Facts() [][2]string {
	s := r.Summary
	facts := [][2]string{{"records", units.Count(r.Stats.Records)}, {"fields", strconv.Itoa(len(s.Fields))},
		{"size", s.SizeText()}, {"format", s.FormatText()}}
	if r.Stats.Split != "" {
		facts = append(facts, [2]string{"split", shell.Line(r.Stats.Split)})
	}
	if s.Generation > 1 {
		facts = append(facts, [2]string{"generation", s.GenerationText()})
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
