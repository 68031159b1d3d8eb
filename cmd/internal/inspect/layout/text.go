package layout

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// Render prints a table of the pieces, a table of the chunks, and the lines of NumPy.
func (l *Layout) Render(w io.Writer) error {
	var b strings.Builder
	t := cli.Table{Align: "lrrr"}
	t.Add("file", "offset", "bytes", "", "what")
	last := ""
	for _, p := range l.Pieces {
		file := shell.Line(p.File)
		if p.File == last {
			file = ""
		}
		last = p.File
		t.Add(file, strconv.FormatInt(p.Offset, 10), strconv.FormatInt(p.Size, 10), large(p.Size), p.describe())
	}
	b.WriteString(t.String())
	l.renderChunks(&b)
	l.renderMaps(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// large returns a size in KiB, MiB and so on, if its digits are hard to read.
func large(n int64) string {
	if n < 1<<16 {
		return ""
	}
	return units.Bytes(n)
}

// describe says what a piece is. The field is left out if the name of the file has it.
func (p Piece) describe() string {
	text := shell.Line(p.What)
	if p.Field != "" && !strings.HasPrefix(p.File, p.Field+"-") && !strings.HasPrefix(p.File, p.Field+"/") {
		text = shell.Line(p.Field) + ": " + text
	}
	if p.First != nil && p.Count != nil && *p.Count > 0 {
		text += fmt.Sprintf(" %d to %d", *p.First, *p.First+*p.Count-1)
	}
	return text
}

// renderMaps prints the lines of NumPy, one for each field or shard.
func (l *Layout) renderMaps(b *strings.Builder) {
	if len(l.Maps) == 0 {
		return
	}
	t := cli.Table{Indent: 2}
	for i, m := range l.Maps {
		name := shell.Line(dataset.Identifier(m.Field))
		if l.shards(i) {
			name += fmt.Sprintf("_%d", m.Shard)
		}
		if m.Python == "" {
			t.Add(name, "# cannot be mapped: "+m.Reason)
			continue
		}
		t.Add(name, "= "+m.Python)
	}
	fmt.Fprintf(b, "\nIn NumPy, by offset\n%s", &t)
}

// shards reports whether entry i of Maps is one of several shards of its field.
func (l *Layout) shards(i int) bool {
	same := func(k int) bool { return k >= 0 && k < len(l.Maps) && l.Maps[k].Field == l.Maps[i].Field }
	return same(i-1) || same(i+1)
}
