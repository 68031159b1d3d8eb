package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// differenceWidth is how long a side of a difference is shown.
const differenceWidth = 100

// Render prints the differences, those of values last, or that there are none.
func (c *Comparison) Render(w io.Writer) error {
	var b strings.Builder
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", printable(note))
	}
	if c.Same {
		fmt.Fprintf(&b, "%s and %s hold the same: %s, %s compared\n", printable(c.A), printable(c.B),
			cli.Counted(c.Records, "record"), cli.Counted(int64(len(c.Values)), "field"))
	}
	for _, d := range c.Differences {
		fmt.Fprintf(&b, "%s\n  %s: %s\n  %s: %s\n", d.title(), printable(c.A), side(d.A), printable(c.B), side(d.B))
	}
	c.renderValues(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (d Difference) title() string {
	if d.Field == "" {
		return printable(d.What)
	}
	return printable(d.What + " of " + d.Field)
}

func side(text string) string {
	if text == "" {
		return "none"
	}
	return shorten(printable(text), differenceWidth)
}

func (c *Comparison) renderValues(b *strings.Builder) {
	t := table{indent: 2, align: "lrrrrr"}
	t.add("", "records", "first", "elements", "other lengths", "largest difference")
	for _, v := range c.Values {
		if v.Records > 0 {
			t.add(printable(v.Field), cli.Count(v.Records), cli.Count(*v.First), cli.Count(v.Elements), cli.Count(v.Lengths), limit(v.Largest))
		}
	}
	if len(t.rows) > 1 {
		fmt.Fprintf(b, "values that differ, of %s\n%s", cli.Counted(c.Records, "record"), &t)
	}
}

// Err returns what the command fails with, nil if nothing differs.
func (c *Comparison) Err() error {
	if c.Same {
		return nil
	}
	return fmt.Errorf("%s and %s differ", c.A, c.B)
}
