package summary

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// Render prints the objects of an HDF5 file, how they are stored, what reading them costs, and the
// commands that make reading faster. If the file's origin has a command, the general conversions
// are left out: they know less about the file.
func Render(b *strings.Builder, nodes []Node, origin *Origin, repacks []Repack, conversions []Conversion) {
	renderTree(b, nodes)
	renderStorage(b, nodes)
	renderReading(b, nodes)
	renderRepacks(b, repacks)
	if origin == nil || origin.Command == "" {
		renderConversions(b, conversions)
	}
	renderOrigin(b, origin)
}

// renderTree prints an HDF5 file as an indented list.
func renderTree(b *strings.Builder, nodes []Node) {
	if len(nodes) == 0 {
		return
	}
	t := cli.Table{Indent: 2, Wide: 40}
	for _, n := range nodes {
		indent := ""
		if n.Path != "/" {
			indent = strings.Repeat("  ", strings.Count(n.Path, "/"))
		}
		t.Add(append([]string{indent + nodeName(n)}, nodeCells(n)...)...)
		for _, a := range n.Attributes {
			t.Add(indent+"  @"+a.Name, a.typeText(), attributeText(a))
		}
	}
	fmt.Fprintf(b, "\nTree\n%s", &t)
}

// nodeName returns the last part of an object's path.
func nodeName(n Node) string {
	name := shell.Line(n.Path[strings.LastIndexByte(n.Path, '/')+1:])
	if n.Kind == "group" {
		name += "/"
	}
	return name
}

// nodeCells returns the cells that are printed for an object besides its name.
func nodeCells(n Node) []string {
	switch {
	case n.Kind == "dataset":
		return []string{n.typeText(), n.storage(), n.verdict()}
	case n.Target != "":
		text := n.Kind + " to " + shell.Line(n.Target)
		if n.Reason != "" {
			text += ", skipped: " + shell.Line(n.Reason)
		}
		return []string{text}
	case n.Kind == "type":
		return []string{"type " + n.DType}
	case n.Reason != "":
		return []string{n.Kind + ": " + shell.Line(n.Reason)}
	case n.Kind == "group":
		return nil
	}
	return []string{n.Kind}
}

// typeText returns type and shape of a dataset, and how far the shape can grow.
func (n Node) typeText() string {
	text := n.DType + " " + dims(n.Shape)
	if n.Named {
		text = "named " + text
	}
	if len(n.MaxShape) > 0 {
		text += " of " + strings.ReplaceAll(dims(n.MaxShape), "-1", "any")
	}
	return text
}

// typeText returns type and shape of an attribute.
func (a Attribute) typeText() string {
	if len(a.Shape) == 0 {
		return a.DType
	}
	return a.DType + " " + dims(a.Shape)
}

// storage says how the elements are on disk: layout, chunks, filters, size.
func (n Node) storage() string {
	text := n.Layout
	if len(n.Chunk) > 0 {
		text += " " + dims(n.Chunk)
	}
	for _, f := range n.Filters {
		text += ", " + shell.Line(f)
	}
	return text + ", " + units.Bytes(n.Bytes)
}

// verdict says what penstock does with a dataset: map it, convert it, or refuse it.
func (n Node) verdict() string {
	if n.Mappable != nil && *n.Mappable {
		return "maps"
	}
	if s := n.Storage; s != nil && len(s.Fields) > 0 {
		return "preprocess reads it: " + shell.Line(strings.Join(s.Fields[:min(len(s.Fields), 3)], ", ")) +
			more(len(s.Fields)-3)
	}
	if s := n.Storage; s != nil && s.Unread != "" {
		return "is not read: " + shell.Line(s.Unread)
	}
	return "does not map: " + shell.Line(n.Reason)
}

// more returns " and N more" for positive n.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// dims formats a shape as NumPy does.
func dims(shape []int64) string {
	parts := make([]string, len(shape))
	for i, n := range shape {
		parts[i] = fmt.Sprint(n)
	}
	if len(parts) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// attributeWidth is the number of characters of a value that are shown.
const attributeWidth = 60

// attributeText returns the value of an attribute in one line.
func attributeText(a Attribute) string {
	switch v := a.Value.(type) {
	case nil:
		return shell.Line(a.Note)
	case string:
		return cli.Shorten(fmt.Sprintf("%q", v), attributeWidth)
	case []string:
		return cli.Shorten(fmt.Sprintf("%q", v), attributeWidth)
	default:
		return cli.Shorten(fmt.Sprint(v), attributeWidth)
	}
}
