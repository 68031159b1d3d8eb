package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

const barWidth = 32

// renderClasses prints a histogram of the first classes of a field; most 0 means of all.
func renderClasses(b *strings.Builder, f Field, most int) {
	if len(f.Classes) == 0 {
		return
	}
	shown := f.Classes
	if most > 0 && len(shown) > most {
		shown = shown[:most]
	}
	low, high := classRange(f.Classes)
	t := table{indent: 2, align: "rlr"}
	for i, c := range shown {
		row := []string{strconv.Itoa(i), shorten(printable(c.Name), 32)}
		if c.Records != nil {
			row = append(row, cli.Count(*c.Records), bar(*c.Records, high, barWidth))
		}
		t.add(row...)
	}
	fmt.Fprintf(b, "\nClasses of %s: %s%s\n%s", printable(f.Name), cli.Count(int64(len(f.Classes))), balance(low, high), &t)
	if rest := len(f.Classes) - len(shown); rest > 0 {
		fmt.Fprintf(b, "  ... and %s more\n", cli.Count(int64(rest)))
	}
}

// classRange returns the fewest and most records of a class, -1 where that is not known.
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

func balance(low, high int64) string {
	switch {
	case low < 0:
		return ""
	case low == high:
		return ", " + cli.Counted(low, "record") + " each"
	}
	return fmt.Sprintf(", %s to %s records each", cli.Count(low), cli.Count(high))
}

// renderStatistics prints a line for each channel of the fields that are not labels.
func (s *Summary) renderStatistics(b *strings.Builder) {
	var measured []Field
	bytes, bad := false, false
	for _, f := range s.Fields {
		if f.Statistics == nil || len(f.Classes) > 0 || f.Content != "" {
			continue
		}
		measured = append(measured, f)
		bytes = bytes || f.DType == tensor.Uint8
		bad = bad || f.Statistics.NonFinite > 0
	}
	if len(measured) == 0 {
		return
	}
	t := table{indent: 2, align: "lrrrrrrr"}
	head := []string{"", "min", "max", "mean", "std"}
	if bytes {
		head = append(head, "mean/255", "std/255")
	}
	if bad {
		head = append(head, "not finite")
	}
	t.add(head...)
	for _, f := range measured {
		addMoments(&t, f, bytes, bad)
	}
	fmt.Fprintf(b, "\nStatistics of the stored values\n%s", &t)
}

func addMoments(t *table, f Field, bytes, bad bool) {
	rows := f.Statistics.Channels
	if len(rows) == 0 {
		rows = []store.Moments{f.Statistics.Moments}
	}
	for c, m := range rows {
		name := printable(f.Name)
		if len(rows) > 1 {
			name += " " + channelName(c, len(rows))
		}
		row := []string{name, limit(m.Min), limit(m.Max), decimal(m.Mean), decimal(m.Std)}
		switch {
		case bytes && f.DType == tensor.Uint8:
			row = append(row, decimal(m.Mean/255), decimal(m.Std/255))
		case bytes:
			row = append(row, "", "")
		}
		if bad {
			row = append(row, cli.Count(m.NonFinite))
		}
		t.add(row...)
	}
}

// channelName names a channel as people think of it.
func channelName(c, of int) string {
	if of == 3 {
		return [3]string{"red", "green", "blue"}[c]
	}
	return "channel " + strconv.Itoa(c)
}

// limit writes a smallest or largest value, which often is a whole number.
func limit(v float64) string {
	if v == float64(int64(v)) && abs(v) < 1e15 {
		return strconv.FormatInt(int64(v), 10)
	}
	return decimal(v)
}
