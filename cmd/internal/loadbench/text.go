package loadbench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// Text writes the report for people. On a terminal that is narrower than a table, the columns that
// do not fit are printed below the others.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	width := cli.TerminalWidth(w)
	r.head(&b)
	for i := range r.Tables {
		r.Tables[i].text(&b, width)
	}
	if r.Interrupted {
		b.WriteString("\nInterrupted: these tables are partial; rows that were not finished are missing.\n")
	}
	r.advice(&b)
	_, err := io.WriteString(w, cli.Wrap(shell.Lines(b.String()), width, 2))
	return err
}

// Markdown writes the report for a web page, with tables in Markdown.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	r.head(&b)
	for i := range r.Tables {
		t := &r.Tables[i]
		fmt.Fprintf(&b, "\n%s\n\n%s\n", t.Title, t.grid().Markdown(t.Name))
		t.remarks(&b)
	}
	r.advice(&b)
	_, err := io.WriteString(w, shell.Lines(b.String()))
	return err
}

// advice writes the bottleneck, the order of labels, and the fastest setting.
func (r *Report) advice(b *strings.Builder) {
	if r.Bottleneck != "" {
		fmt.Fprintf(b, "\n%s\n", r.Bottleneck)
	}
	if r.Order != "" {
		fmt.Fprintf(b, "\n%s\n", r.Order)
	}
	if s := r.Setting; s != nil {
		fmt.Fprintf(b, "\nfastest in a full shuffle: %s; in Go and in Python:\n  %s\n  %s\n", s.Row, s.Go, s.Python)
	}
}

// head writes the heading of the report: the data that was loaded, and the machine.
func (r *Report) head(b *strings.Builder) {
	d, m := &r.Dataset, &r.Machine
	b.WriteString(shell.Line(d.Name))
	if d.Records > 0 {
		fmt.Fprintf(b, ": %s", units.Counted(int64(d.Records), "record"))
	}
	if d.RecordBytes > 0 {
		fmt.Fprintf(b, " of %s", units.Counted(int64(d.RecordBytes), "byte"))
	}
	if len(d.Fields) > 0 {
		fmt.Fprintf(b, ": %s", shell.Line(strings.Join(d.Fields, ", ")))
	}
	if d.Remote != "" {
		b.WriteString("\n" + shell.Line(d.Remote))
	}
	fmt.Fprintf(b, "\n%s", units.Counted(int64(m.Cores), "core"))
	for _, text := range []string{m.CPU, m.OS + "/" + m.Arch, m.Go} {
		if text != "" {
			b.WriteString(", " + text)
		}
	}
	if m.Load != "" {
		fmt.Fprintf(b, "; load at the start %s", m.Load)
	}
	fmt.Fprintf(b, "\none core: memcpy %s, reading %s", gigabytes(m.Memcpy), gigabytes(m.Read))
	if m.Pread > 0 {
		fmt.Fprintf(b, ", pread %s", gigabytes(m.Pread))
	}
	fmt.Fprintf(b, "; a page fault %.2f us", m.Fault/1e3)
	if m.Resident >= 0 {
		fmt.Fprintf(b, "; %.0f %% of the data were in memory", 100*m.Resident)
	}
	b.WriteString("\n")
	for _, text := range []string{r.Cache, r.Scaled, m.busy()} {
		if text != "" {
			fmt.Fprintf(b, "%s\n", text)
		}
	}
}

// gigabytes formats a rate in bytes per second.
func gigabytes(rate float64) string { return fmt.Sprintf("%.3g GB/s", rate/1e9) }

// text writes a table, a line for each row, and the remarks below.
func (t *Table) text(b *strings.Builder, width int) {
	fmt.Fprintf(b, "\n%s\n", t.Title)
	for i, part := range t.grid().Parts(width) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(part.String())
	}
	t.remarks(b)
}

// remarks writes the notes of the rows and of the table.
func (t *Table) remarks(b *strings.Builder) {
	for i := range t.Rows {
		switch r := &t.Rows[i]; {
		case !r.Ran():
			fmt.Fprintf(b, "  %s: not available: %s\n", r.Name, r.Unavailable)
		case r.Note != "":
			fmt.Fprintf(b, "  %s: %s\n", r.Name, r.Note)
		}
		if r := &t.Rows[i]; r.Ran() && r.Decoded > 0 {
			fmt.Fprintf(b, "  %s: %.2f bytes of chunks were decoded for each byte of the batches\n", r.Name,
				float64(r.Decoded)/float64(max(1, r.Read)))
		}
	}
	if text := t.against(); t.guide && text != "" {
		fmt.Fprintf(b, "  %s\n", text)
	}
	if t.hasty() {
		b.WriteString("  Rows of a few milliseconds say little: more --batches would make them longer.\n")
	}
	for _, note := range t.Notes {
		fmt.Fprintf(b, "  %s\n", note)
	}
}

// hasty reports whether a row took less than 20 ms, in which the clock and the scheduler matter as
// much as the loader.
func (t *Table) hasty() bool {
	const least = 20 * time.Millisecond
	return slices.ContainsFunc(t.Rows, func(r Result) bool { return r.Ran() && r.Total < least })
}

// grid returns the head and the rows of the table.
func (t *Table) grid() *cli.Table {
	published := slices.ContainsFunc(t.Rows, func(r Result) bool { return r.Published != nil })
	head := []string{t.vary, "total", "records/s", "speed-up", "on prev.", "first", "wait p50", "p95", "p99", "CPU",
		"copied", "of limit"}
	switch {
	case t.guide:
		head = guideHead
	case published:
		head = append(head, "tutorial's")
	}
	g := &cli.Table{Indent: 2, Align: "l" + strings.Repeat("r", len(head)-1)}
	g.Add(head...)
	for i := range t.Rows {
		if t.guide {
			g.Add(t.Rows[i].guideCells()...)
		} else {
			g.Add(t.Rows[i].cells(published)...)
		}
	}
	return g
}

// cells returns the cells of a row.
func (r *Result) cells(published bool) []string {
	if !r.Ran() {
		cells := []string{r.Name, "n/a", "", "", "", "", "", "", "", "", "", ""}
		return append(cells, r.Published.cells(published)...)
	}
	cells := []string{r.Name, short(r.ofAsked(r.Total)), units.Count(int64(r.Rate())), fmt.Sprintf("%.2fx", r.SpeedUp),
		fmt.Sprintf("%.2fx", r.Step),
		short(r.FirstBatch), short(r.Wait.P50), short(r.Wait.P95), short(r.Wait.P99), short(r.ofAsked(r.CPU)),
		fmt.Sprintf("%.0f %%", 100*float64(r.Copied)/float64(max(1, r.Bytes))), fmt.Sprintf("%.0f %%", 100*r.Limit)}
	return append(cells, r.Published.cells(published)...)
}

// cells returns the cell with a published result, if the table has a column of published results.
func (p *Published) cells(show bool) []string {
	switch {
	case !show:
		return nil
	case p == nil:
		return []string{"-"}
	}
	return []string{fmt.Sprintf("%.2f s %.2fx", p.Seconds, p.SpeedUp)}
}

// short formats d with three significant digits.
func short(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d >= u.size {
			x := float64(d) / float64(u.size)
			digits := 2
			if x >= 100 {
				digits = 0
			} else if x >= 10 {
				digits = 1
			}
			return fmt.Sprintf("%.*f %s", digits, x, u.name)
		}
	}
	return fmt.Sprintf("%d ns", d.Nanoseconds())
}
