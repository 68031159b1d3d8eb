package loadbench

import (
	"fmt"
	"io"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/chart"
	"github.com/penstock/penstock/internal/units"
)

// WritePlot draws the rates of the rows of each table as SVG.
func (r *Report) WritePlot(path string) error {
	var panels []chart.Panel
	for i := range r.Tables {
		t := &r.Tables[i]
		p := chart.Panel{Title: t.Name + ", records a second"}
		best := t.best(1)
		for j := range t.Rows {
			if row := &t.Rows[j]; row.Ran() && row.Batches > 0 {
				p.Rows = append(p.Rows, chart.Row{Name: row.Name, Value: row.Rate(), Text: units.Count(int64(row.Rate())),
					Marked: row == best})
			}
		}
		if best != nil {
			panels = append(panels, p)
		}
	}
	if len(panels) == 0 {
		return fmt.Errorf("plot: nothing was measured that %s could show", path)
	}
	svg := chart.Draw("Records a second from "+r.Dataset.Name, panels...)
	return cli.WriteFile(path, func(w io.Writer) error { _, err := io.WriteString(w, svg); return err })
}
