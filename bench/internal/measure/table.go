package measure

import (
	"fmt"
	"io"
	"strings"
)

// Table writes a table of Markdown: the first row is its head.
func Table(w io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	line := func(cells []string) {
		for i, c := range cells {
			fmt.Fprintf(w, "| %s%s ", c, strings.Repeat(" ", width[i]-len([]rune(c))))
		}
		fmt.Fprintln(w, "|")
	}
	line(rows[0])
	rule := make([]string, len(width))
	for i, n := range width {
		rule[i] = strings.Repeat("-", n)
	}
	line(rule)
	for _, r := range rows[1:] {
		line(r)
	}
	fmt.Fprintln(w)
}

// Lines writes results as Go's benchmarks are written, for benchstat: one line a round.
func Lines(w io.Writer, group, item string, results []Result) {
	for _, r := range results {
		for _, s := range r.Rounds {
			name := strings.ReplaceAll(group+"/"+r.Name, " ", "_")
			fmt.Fprintf(w, "Benchmark%s 1 %.0f ns/%s %.0f cpu-ns/%s\n", name, s.Wall*1e9, item, s.CPU*1e9, item)
		}
	}
	fmt.Fprintln(w)
}
