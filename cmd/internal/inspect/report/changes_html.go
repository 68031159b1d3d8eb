package report

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/cmd/internal/cli"

	"github.com/penstock/penstock/cmd/internal/inspect/stats"
	"github.com/penstock/penstock/internal/units"
)

// write writes the difference from an earlier generation; split is that of the report.
func (c *Changes) write(b *body, split string) {
	b.Add("<section id=\"changes\"><h2>Changes from generation {} to {}</h2>\n", c.Before, c.After)
	c.writeSteps(b)
	c.writeColumns(b)
	c.Records.write(b, split)
	c.writeStatistics(b)
	b.Add("</section>\n")
}

func (c *Changes) writeSteps(b *body) {
	b.Add("<h3>Steps</h3>\n")
	openTable(b, "Steps", column{"generation", true}, column{"change", false}, column{"by", false},
		column{"time (UTC)", true})
	for _, s := range c.Steps {
		b.Add(`<tr><td class="n">{}</td><td class="wide">{}</td><td class="wide">{}</td><td class="n">{}</td></tr>`, s.Generation,
			s.Done, s.By, s.Time)
	}
	closeTable(b)
	if c.Pruned > 0 {
		b.Add("<p class=\"note\">Pruned, and so not listed: {}.</p>\n", units.Counted(int64(c.Pruned), "generation"))
	}
}

func (c *Changes) writeColumns(b *body) {
	b.Add("<h3>Columns</h3>\n")
	if len(c.Columns) == 0 {
		b.Add("<p>All columns have the same type and values.</p>\n")
		return
	}
	openTable(b, "Columns that changed", column{"column", false}, column{"change", false})
	for _, d := range c.Columns {
		b.Add(`<tr><td class="name">{}</td><td class="wide">{}</td></tr>`, d.Name, d.Change)
	}
	closeTable(b)
}

func (r RecordChanges) write(b *body, split string) {
	b.Add("<h3>Records")
	if split != "" {
		b.Add(" <small>of all splits</small>")
	}
	b.Add("</h3>\n")
	if !r.any() {
		b.Add("<p>Both generations have the same {}.</p>\n", units.Counted(r.After, "record"))
		return
	}
	openTable(b, "Records", column{"before", true}, column{"added", true}, column{"deleted", true},
		column{"restored", true}, column{"after", true})
	b.Add("<tr>")
	for _, n := range []int64{r.Before, r.Added, r.Deleted, r.Restored, r.After} {
		b.Add(`<td class="n">{}</td>`, units.Count(n))
	}
	b.Add("</tr>")
	closeTable(b)
}

func (c *Changes) writeStatistics(b *body) {
	if len(c.Fields) == 0 {
		return
	}
	b.Add("<h3>Statistics before and after</h3>\n")
	numbers := slices.DeleteFunc(slices.Clone(c.Fields), FieldChange.counted)
	if len(numbers) > 0 {
		c.writeNumbers(b, numbers)
	}
	for _, f := range c.Fields {
		if f.counted() {
			writeClassCounts(b, f)
		}
	}
}

// counted reports whether a column is classes in both generations, which are counted.
func (f FieldChange) counted() bool {
	return f.Before != nil && f.After != nil && len(f.Before.Labels) > 0 && len(f.After.Labels) > 0
}

func (c *Changes) writeNumbers(b *body, fields []FieldChange) {
	openTable(b, "Statistics before and after", column{"column", false}, column{"generation", true}, column{"mean", true},
		column{"std", true}, column{"min", true}, column{"max", true})
	for _, f := range fields {
		writeMoments(b, f.Name, c.Before, f.Before)
		writeMoments(b, f.Name, c.After, f.After)
	}
	closeTable(b)
}

// writeMoments writes a row of the statistics of a field in a generation, or of its lengths if it is ragged.
func writeMoments(b *body, name string, generation int, f *stats.FieldStats) {
	if f == nil {
		b.Add(`<tr><td class="name">{}</td><td class="n">{}</td><td colspan="4">not there</td></tr>`, name, generation)
		return
	}
	row := func(name string, mean, std, low, high float64) {
		b.Add(`<tr><td class="name">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>`,
			name, generation, cli.Decimal(mean), cli.Decimal(std), cli.Number(low), cli.Number(high))
	}
	if m := f.Moments; m != nil {
		row(name, m.Mean, m.Std, m.Min, m.Max)
	}
	if n := f.Lengths; n != nil {
		row(fmt.Sprintf("%s, %s", name, f.LengthName()), n.Mean, n.Std, n.Min, n.Max)
	}
}

// classCount is how many records a class has in both generations.
type classCount struct {
	name          string
	before, after int64
}

// classCounts returns the classes whose counts differ, and how many have the same in both generations.
func classCounts(f FieldChange) (differ []classCount, same int) {
	var all []classCount
	at := make(map[string]int)
	of := func(l stats.Label) *classCount {
		name := labelText(l)
		if _, ok := at[name]; !ok {
			at[name], all = len(all), append(all, classCount{name: name})
		}
		return &all[at[name]]
	}
	for _, l := range f.Before.Labels {
		of(l).before += l.Records
	}
	for _, l := range f.After.Labels {
		of(l).after += l.Records
	}
	differ = slices.DeleteFunc(slices.Clone(all), func(c classCount) bool { return c.before == c.after })
	return differ, len(all) - len(differ)
}

func writeClassCounts(b *body, f FieldChange) {
	differ, same := classCounts(f)
	b.Add("<h3>{} <small>records by class</small></h3>\n", f.Name)
	if len(differ) == 0 {
		b.Add("<p>All classes have as many records as before.</p>\n")
		return
	}
	openTable(b, "Classes of "+f.Name, column{"class", false}, column{"before", true}, column{"after", true},
		column{"difference", true})
	for _, c := range differ[:min(len(differ), shownLabels)] {
		b.Add(`<tr><td class="name">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>`, c.name,
			units.Count(c.before), units.Count(c.after), fmt.Sprintf("%+d", c.after-c.before))
	}
	closeTable(b)
	if n := len(differ); n > shownLabels {
		b.Add("<p class=\"note\">The first {} of {} classes whose counts differ; penstock inspect report --json lists "+
			"all.</p>\n", shownLabels, units.Count(int64(n)))
	}
	if same > 0 {
		b.Add("<p class=\"note\">With the same count: {}.</p>\n", classes(same))
	}
}
