package layout

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
)

// describe says what is in a gap, in words.
func (g *gap) describe() string {
	var words []string
	for _, p := range g.parts {
		switch {
		case p.chunks > 0:
			words = append(words, units.Counted(p.chunks, "chunk")+" of "+p.field)
		case p.index == 0:
			words = append(words, "perhaps chunks of "+p.field+", whose index cannot be read")
		}
		if p.index > 0 {
			words = append(words, "index of "+p.field+" ("+units.Counted(p.index, "byte")+")")
		}
	}
	if rest := g.to - g.from - g.known; rest > 0 || len(words) == 0 {
		free := "padding or free space"
		if len(words) > 0 && !g.unread {
			free += " (" + units.Counted(rest, "byte") + ")"
		}
		words = append(words, free)
	}
	return strings.Join(words, ", ")
}

// renderChunks prints a line for each chunked dataset.
func (l *Layout) renderChunks(b *strings.Builder) {
	if len(l.Chunks) == 0 {
		return
	}
	t := cli.Table{Indent: 2, Align: "llrrrrrrrrrl"}
	t.Add("", "shape", "bytes", "chunks", "of", "stored", "smallest", "median", "largest", "from", "to", "index")
	for _, m := range l.Chunks {
		name, shape := shell.Line(m.Field), joined(m.Shape, "x")
		if m.Problem != "" {
			t.Add(name, shape, "# "+m.Problem)
			continue
		}
		row := []string{name, shape}
		for _, n := range []int64{m.Bytes, m.Count, m.Places, m.Stored, m.Smallest, m.Median, m.Largest, m.From, m.To} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		index := m.Index
		if m.IndexAt >= 0 {
			index += fmt.Sprintf(" at %d", m.IndexAt)
		}
		t.Add(append(row, index)...)
	}
	fmt.Fprintf(b, "\nChunks (--chunks lists each)\n%s", &t)
}

// joined returns numbers with a separator between them.
func joined(list []int64, by string) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(words, by)
}

// listed is a line of the list of chunks.
type listed struct {
	Field  string   `json:"field"`
	First  []int64  `json:"first"` // the coordinates of the chunk's first element
	Offset int64    `json:"offset"`
	Bytes  int64    `json:"bytes"`
	Raw    []string `json:"not_applied,omitempty"` // filters of the dataset that this chunk skipped
}

// ListChunks writes a line for every stored chunk of the HDF5 file at path, by dataset and then in
// the order of the chunk's coordinates: its first element, offset, stored bytes, and the filters
// that were not applied to it. With asJSON, each line is a JSON object.
func ListChunks(w io.Writer, path string, asJSON bool) error {
	p, err := dataset.Open(path)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Meta == nil {
		return fmt.Errorf("%s: fields of a folder are in one piece a shard, there are no chunks to list", path)
	}
	list := chunked(p.Meta)
	if len(list) == 0 && !asJSON {
		_, err := fmt.Fprintf(w, "%s: none of its datasets is chunked\n", shell.Line(path))
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	for _, d := range list {
		if err := listChunks(b, d, asJSON); err != nil {
			b.Flush()
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return b.Flush()
}

// listChunks lists the chunks of one dataset.
func listChunks(w *bufio.Writer, d *meta.Dataset, asJSON bool) error {
	t, err := d.Chunks()
	if err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, c := range t.Chunks {
		line := listed{Field: d.Path[1:], First: c.Coord, Offset: c.Offset, Bytes: c.Size, Raw: notApplied(d, c.Mask)}
		if asJSON {
			err = e.Encode(line)
		} else {
			_, err = w.WriteString(line.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// String returns the line for people.
func (c *listed) String() string {
	line := fmt.Sprintf("%s  [%s]  offset %d  bytes %d", shell.Line(c.Field), joined(c.First, " "), c.Offset, c.Bytes)
	if len(c.Raw) > 0 {
		line += "  without " + shell.Line(strings.Join(c.Raw, ", "))
	}
	return line + "\n"
}

// notApplied names the filters that a chunk skipped. Bit i of the chunk's filter mask says that
// filter i of the pipeline was not applied, as when compression would have made the chunk larger.
func notApplied(d *meta.Dataset, mask uint32) (names []string) {
	for i, f := range d.Filters {
		if mask>>i&1 == 1 {
			names = append(names, f.Name)
		}
	}
	return names
}
