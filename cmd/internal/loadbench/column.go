package loadbench

import (
	"fmt"
	"time"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// column is one of a table that has its own.
type column struct {
	head string
	cell func(*Result) string
}

// Columns to choose from.
var (
	colTotal     = column{"total", func(r *Result) string { return short(r.Total) }}
	colRate      = column{"records/s", func(r *Result) string { return cli.Count(int64(r.Rate())) }}
	colBytes     = column{"GB/s", func(r *Result) string { return fmt.Sprintf("%.2f", float64(r.Bytes)/1e9/max(1e-9, r.Total.Seconds())) }}
	colEach      = column{"a record", func(r *Result) string { return short(r.Total / timeOf(r.Records)) }}
	colWorkers   = column{"workers", func(r *Result) string { return fmt.Sprint(r.Workers) }}
	colFirst     = column{"first", func(r *Result) string { return short(r.FirstBatch) }}
	colP50       = column{"p50", func(r *Result) string { return short(r.Wait.P50) }}
	colP99       = column{"p99", func(r *Result) string { return short(r.Wait.P99) }}
	colCore      = column{"records/s a core", func(r *Result) string { return cli.Count(int64(float64(r.Records) / max(1e-9, r.CPU.Seconds()))) }}
	colCopied    = column{"copied", func(r *Result) string { return fmt.Sprintf("%.0f %%", 100*float64(r.Copied)/float64(max(1, r.Bytes))) }}
	colLimit     = column{"of limit", func(r *Result) string { return fmt.Sprintf("%.0f %%", 100*r.Limit) }}
	colAllocated = column{"allocated", func(r *Result) string { return cli.Bytes(r.Allocated / int64(max(1, r.Batches))) }}
	colUsed      = column{"computing", func(r *Result) string { return fmt.Sprintf("%.1f %%", 100*r.Used) }}
	colPublished = column{"published", func(r *Result) string { return r.Published.cells(true)[0] }}
)

// ownGrid returns the head and rows of a table that has its own columns.
func (t *Table) ownGrid() grid {
	head := []string{""}
	for _, c := range t.columns {
		head = append(head, c.head)
	}
	g := grid{head}
	for i := range t.Rows {
		r := &t.Rows[i]
		line := []string{r.Name}
		for _, c := range t.columns {
			switch {
			case r.Ran():
				line = append(line, c.cell(r))
			case len(line) == 1:
				line = append(line, "n/a")
			default:
				line = append(line, "")
			}
		}
		g = append(g, line)
	}
	return g
}

// timeOf returns n to divide a time by, at least 1.
func timeOf(n int) time.Duration { return time.Duration(max(1, n)) }
