package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// renderStorage prints how the objects of an HDF5 file are stored.
func renderStorage(b *strings.Builder, nodes []Node) {
	if len(nodes) == 0 {
		return
	}
	dated := slices.ContainsFunc(nodes, func(n Node) bool { return n.Modified != nil })
	t := cli.Table{Indent: 2, Align: "lrrlrrll"}
	head := []string{"", "header", "links", "data", "stored", "of all", "fill value"}
	if dated {
		head = append(head, "changed")
	}
	t.Add(head...)
	for _, n := range nodes {
		if n.Header == 0 {
			continue // a link
		}
		row := []string{n.storedName(), fmt.Sprint(n.Header), fmt.Sprint(n.Links), "", "", "", ""}
		if s := n.Storage; s != nil {
			row = append(row[:3], n.whereText(), units.Bytes(s.Stored), share(s.Stored, n.Bytes), s.fillText())
		}
		if dated && n.Modified != nil {
			row = append(row, n.Modified.Format(time.DateTime))
		}
		t.Add(row...)
	}
	fmt.Fprintf(b, "\nStorage\n%s", &t)
}

// storedName returns the path of an object without the leading slash.
func (n Node) storedName() string {
	if n.Kind != "group" || n.Path == "/" {
		return shell.Line(cmp.Or(n.Path[1:], "/"))
	}
	return shell.Line(n.Path[1:] + "/")
}

// whereText says where the elements of a dataset are.
func (n Node) whereText() string {
	s := n.Storage
	switch c := s.Chunks; {
	case len(s.External) > 0:
		text := fmt.Sprintf("from byte %d of %s", s.External[0].Offset, shell.Line(s.External[0].File))
		if more := len(s.External) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return text
	case len(s.Sources) > 0:
		text := "in " + shell.Line(s.Sources[0].File+":"+s.Sources[0].Path)
		if more := len(s.Sources) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return text
	case c != nil && c.Stored == 0:
		return "no chunk was written"
	case c != nil:
		text := fmt.Sprintf("%s of %s", units.Count(c.Stored), units.Counted(c.Places, "chunk"))
		if c.Stored == c.Places {
			text = units.Counted(c.Places, "chunk")
		}
		text += fmt.Sprintf(" of %s", units.Bytes(c.Bytes))
		if c.Smallest != c.Bytes || c.Largest != c.Bytes {
			text += fmt.Sprintf(", stored as %s to %s", units.Bytes(c.Smallest), units.Bytes(c.Largest))
		}
		return text + fmt.Sprintf("; %s at %d", c.Index, c.IndexAt)
	case n.Offset != nil:
		return fmt.Sprintf("at %d", *n.Offset)
	case n.Layout == "virtual":
		return "in other datasets"
	}
	return "not allocated"
}

// share returns a part in percent.
func share(part, all int64) string {
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(all))
}

// fillText describes the fill value, and when HDF5 writes it.
func (s *Storage) fillText() string {
	text := map[string]string{"default": "zero bytes", "user": "the user's", "undefined": "undefined"}[s.FillFrom]
	switch v := s.Fill.(type) {
	case nil:
	case string:
		text = cli.Shorten(fmt.Sprintf("%q", v), attributeWidth)
	default:
		text = cli.Shorten(shell.Line(fmt.Sprint(v)), attributeWidth)
	}
	for _, part := range [][2]string{{"written", s.FillTime}, {"allocated", s.Alloc}} {
		if part[1] != "" {
			text += ", " + part[0] + " " + timeWords[part[1]]
		}
	}
	return text
}

// timeWords explains HDF5's names of times.
var timeWords = map[string]string{
	"alloc": "when allocated", "never": "never", "ifset": "if set by the user",
	"early": "at once", "late": "at the first write", "incremental": "chunk by chunk",
}

// renderReading prints the cost of reading datasets that cannot be mapped. It prints nothing if no
// dataset has a problem.
func renderReading(b *strings.Builder, nodes []Node) {
	t := cli.Table{Indent: 2, Align: "lrrrr"}
	t.Add("", "one alone", fmt.Sprintf("%d at random", adviceBatch), "time of one", "in one piece")
	problems := false
	for _, n := range nodes {
		if n.Storage == nil || n.Storage.Reading == nil || !n.Storage.Reading.cannotBeUsed {
			continue
		}
		r := n.Storage.Reading
		t.Add(n.Path[1:], factor(r.PerRecord), factor(r.PerBatch), nanos(r.Nanos), nanos(r.ConvertedNanos))
		for _, p := range r.Problems {
			problems = true
			t.Add("  - " + p)
		}
	}
	if problems {
		fmt.Fprintf(b, "\nReading by records: bytes to read over bytes wanted, and estimated time\n%s", &t)
	}
}

// renderRepacks prints the commands that make penstock read more of the file.
func renderRepacks(b *strings.Builder, list []Repack) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\nTo read it\n")
	for _, r := range list {
		fmt.Fprintf(b, "  %s\n", r.Command)
		for i, name := range r.Datasets {
			fmt.Fprintf(b, "      %s: %s\n", shell.Line(name), shell.Line(r.Reasons[i]))
		}
	}
}

// noCommand stands for a command with a name in it that cannot be printed.
const noCommand = "(no command, as a name in it cannot be printed: give such datasets other names)"

// renderConversions prints the commands that make datasets that can be mapped.
func renderConversions(b *strings.Builder, list []Conversion) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\nTo map it\n")
	for _, m := range list {
		fmt.Fprintf(b, "  %s\n", cmp.Or(m.Command, noCommand))
		if len(list) > 1 {
			fmt.Fprintf(b, "      %s records of %s\n", units.Count(m.Records), shell.Line(strings.Join(m.Datasets, ", ")))
		}
		fmt.Fprintf(b, "      %s\n", m.promise())
	}
}

// promise states the gain in round numbers, as it is an estimate.
func (m Conversion) promise() string {
	if m.Nanos == 0 {
		return "what is not an array of numbers in this file becomes fields, which are read in place"
	}
	if m.Gain < 1.5 {
		return "reading a record at random takes about as long, but in place, with no copy, and checksums are kept"
	}
	return fmt.Sprintf("a record at random then takes about %s instead of %s: %s times as fast", nanos(m.ConvertedNanos),
		nanos(m.Nanos), rounded(m.Gain))
}

// factor formats a ratio.
func factor(x float64) string { return rounded(x) + "x" }

// rounded formats a number with two significant digits.
func rounded(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return units.Count(int64(math.Round(x/unit) * unit))
}

// nanos formats nanoseconds with two significant digits.
func nanos(n float64) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(max(1, n)))-1))
	d := time.Duration(math.Round(n/unit) * unit)
	for _, u := range []struct {
		per  time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d >= u.per {
			return fmt.Sprintf("%.3g %s", float64(d)/float64(u.per), u.name)
		}
	}
	return fmt.Sprintf("%d ns", d)
}
