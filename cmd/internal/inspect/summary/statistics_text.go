package summary

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// renderClasses prints a bar for each of the first `most` classes of a field, 0 meaning all.
func renderClasses(b *strings.Builder, f Field, most int) {
	if len(f.Classes) == 0 {
		return
	}
	shown := f.Classes
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	low, high := classRange(f.Classes)
	t := cli.Table{Indent: 2, Align: "rlr"}
	for i, c := range shown {
		row := []string{strconv.Itoa(i), cli.Shorten(c.Name, 32)}
		if c.Records != nil {
			row = append(row, units.Count(*c.Records), cli.Bar(*c.Records, high, cli.BarWidth))
		}
		t.Add(row...)
	}
	fmt.Fprintf(b, "\nClasses of %s: %s%s\n%s", shell.Line(f.Name), units.Count(int64(len(f.Classes))),
		balance(low, high), &t)
	if rest := len(f.Classes) - len(shown); rest > 0 {
		fmt.Fprintf(b, "  ... and %s more\n", units.Count(int64(rest)))
	}
}

// classRange returns the smallest and the largest number of records of a class, -1 if they are
// unknown.
func classRange(classes []Class) (low, high int64) {
	low, high = -1, -1
	for _, c := range classes {
		if c.Records == nil {
			return -1, -1
		}
		high = max(high, *c.Records)
		if low < 0 || *c.Records < low {
			low = *c.Records
		}
	}
	return low, high
}

// balance describes the numbers of classRange.
func balance(low, high int64) string {
	switch {
	case low < 0:
		return ""
	case low == high:
		return ", " + units.Counted(low, "record") + " each"
	}
	return fmt.Sprintf(", %s to %s records each", units.Count(low), units.Count(high))
}

// renderStatistics prints a line for each channel of each field that has no classes.
func (s *Summary) renderStatistics(b *strings.Builder) {
	var measured []Field
	bytes, bad := false, false
	for _, f := range s.Fields {
		if f.Statistics == nil || len(f.Classes) > 0 || f.spec().IsBytes() {
			continue
		}
		measured = append(measured, f)
		bytes = bytes || f.DType == tensor.Uint8
		bad = bad || f.Statistics.NonFinite > 0
	}
	if len(measured) == 0 {
		return
	}
	t := cli.Table{Indent: 2, Align: "lrrrrrrr"}
	head := []string{"", "min", "max", "mean", "std"}
	if bytes {
		head = append(head, "mean/255", "std/255")
	}
	if bad {
		head = append(head, "not finite")
	}
	t.Add(head...)
	for _, f := range measured {
		addMoments(&t, f, bytes, bad)
	}
	fmt.Fprintf(b, "\nStatistics of the stored values\n%s", &t)
}

// addMoments adds the lines of a field. bytes and bad say which columns the table has.
func addMoments(t *cli.Table, f Field, bytes, bad bool) {
	rows := f.Statistics.Channels
	if len(rows) == 0 {
		rows = []store.Moments{f.Statistics.Moments}
	}
	for c, m := range rows {
		name := shell.Line(f.Name)
		if len(rows) > 1 {
			name += " " + dataset.ChannelName(c, len(rows))
		}
		row := []string{name, cli.Number(m.Min), cli.Number(m.Max), cli.Decimal(m.Mean), cli.Decimal(m.Std)}
		switch {
		case bytes && f.DType == tensor.Uint8:
			row = append(row, cli.Decimal(m.Mean/255), cli.Decimal(m.Std/255))
		case bytes:
			row = append(row, "", "")
		}
		if bad {
			row = append(row, units.Count(m.NonFinite))
		}
		t.Add(row...)
	}
}
