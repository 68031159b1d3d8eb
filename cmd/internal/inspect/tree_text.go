package inspect

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// renderTree prints an HDF5 file as an indented list.
func renderTree(b *strings.Builder, nodes []Node) {
	if len(nodes) == 0 {
		return
	}
	t := table{indent: 2}
	for _, n := range nodes {
		indent := ""
		if n.Path != "/" {
			indent = strings.Repeat("  ", strings.Count(n.Path, "/"))
		}
		t.add(append([]string{indent + nodeName(n)}, nodeCells(n)...)...)
		for _, a := range n.Attributes {
			t.add(indent+"  @"+printable(a.Name), a.typeText(), attributeText(a))
		}
	}
	fmt.Fprintf(b, "\nTree\n%s", &t)
}

func nodeName(n Node) string {
	name := printable(n.Path[strings.LastIndexByte(n.Path, '/')+1:])
	if n.Kind == "group" {
		name += "/"
	}
	return name
}

func nodeCells(n Node) []string {
	switch {
	case n.Kind == "dataset":
		return []string{n.typeText(), n.storage(), n.verdict()}
	case n.Target != "":
		return []string{n.Kind + " to " + printable(n.Target)}
	case n.Kind == "type":
		return []string{"type " + n.DType}
	case n.Reason != "":
		return []string{n.Kind + ": " + printable(n.Reason)}
	case n.Kind == "group":
		return nil
	}
	return []string{n.Kind}
}

// typeText is type and shape, and how far the shape can grow.
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

func (a Attribute) typeText() string {
	if len(a.Shape) == 0 {
		return a.DType
	}
	return a.DType + " " + dims(a.Shape)
}

// storage says how the elements of a dataset lie on disk.
func (n Node) storage() string {
	text := n.Layout
	if len(n.Chunk) > 0 {
		text += " " + dims(n.Chunk)
	}
	for _, f := range n.Filters {
		text += ", " + printable(f)
	}
	return text + ", " + cli.Bytes(n.Bytes)
}

func (n Node) verdict() string {
	if n.Mappable != nil && *n.Mappable {
		return "maps"
	}
	if s := n.Storage; s != nil && s.Unread != "" {
		return "is not read: " + printable(s.Unread)
	}
	return "does not map: " + printable(n.Reason)
}

// dims writes a shape as NumPy does.
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

// attributeWidth is how many characters of a value are shown.
const attributeWidth = 60

func attributeText(a Attribute) string {
	switch v := a.Value.(type) {
	case nil:
		return printable(a.Note)
	case string:
		return shorten(fmt.Sprintf("%q", v), attributeWidth)
	case []string:
		return shorten(fmt.Sprintf("%q", v), attributeWidth)
	default:
		return shorten(fmt.Sprint(v), attributeWidth)
	}
}
