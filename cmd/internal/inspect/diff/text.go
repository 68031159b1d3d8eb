package diff

import (
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// differenceWidth is the number of characters that are shown of one side of a difference.
const differenceWidth = 100

// Render prints the differences, the values last because they are the longest part.
func (c *Comparison) Render(w io.Writer) error {
	var b strings.Builder
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", shell.Line(note))
	}
	if c.Same {
		fmt.Fprintf(&b, "%s and %s hold the same: %s, %s compared, by %s\n", shell.Line(c.A), shell.Line(c.B),
			units.Counted(c.Records, "record"), units.Counted(int64(len(c.Values)), "field"), c.By)
	}
	for _, d := range c.Differences {
		fmt.Fprintf(&b, "%s\n  %s: %s\n  %s: %s\n", d.title(), shell.Line(c.A), side(d.A), shell.Line(c.B), side(d.B))
	}
	deleted, added := "deleted", "added"
	if c.By != byPlace {
		deleted, added = "only in "+shell.Line(c.A), "only in "+shell.Line(c.B)
	}
	c.Deleted.render(&b, deleted)
	c.Added.render(&b, added)
	c.renderValues(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// title says what differs, and in which field.
func (d Difference) title() string {
	if d.Field == "" {
		return shell.Line(d.What)
	}
	return shell.Line(d.What + " of " + d.Field)
}

// side returns one side of a difference, in one line.
func side(text string) string {
	if text == "" {
		return "none"
	}
	return cli.Shorten(shell.Line(text), differenceWidth)
}

// renderValues prints a table of the fields whose values differ.
func (c *Comparison) renderValues(b *strings.Builder) {
	t := cli.Table{Indent: 2, Align: "lrrrrr"}
	t.Add("", "records", "first", "elements", "other lengths", "largest difference")
	for _, v := range c.Values {
		if v.Records > 0 {
			t.Add(v.Field, units.Count(v.Records), units.Count(*v.First), units.Count(v.Elements),
				units.Count(v.Lengths), cli.Number(v.Largest))
		}
	}
	switch {
	case len(t.Rows) > 1:
		fmt.Fprintf(b, "values that differ, of %s compared by %s\n%s", units.Counted(c.Records, "record"), c.By, &t)
	case !c.Same:
		fmt.Fprintf(b, "no value differs, of %s compared by %s\n", units.Counted(c.Records, "record"), c.By)
	}
}

// render lists records that only one dataset has.
func (u Unmatched) render(b *strings.Builder, title string) {
	if u.Records == 0 {
		return
	}
	fmt.Fprintf(b, "%s: %s\n", title, units.Counted(u.Records, "record"))
	for _, r := range u.First {
		fmt.Fprintf(b, "  %d", r.Number)
		if r.Name != "" {
			fmt.Fprintf(b, " (%s)", shell.Line(r.Name))
		}
		b.WriteString("\n")
	}
	if more := u.Records - int64(len(u.First)); more > 0 {
		fmt.Fprintf(b, "  and %s more\n", units.Count(more))
	}
}

// Err returns an error if the datasets differ, which gives the command its exit code.
func (c *Comparison) Err() error {
	if c.Same {
		return nil
	}
	return fmt.Errorf("%s and %s differ", c.A, c.B)
}
