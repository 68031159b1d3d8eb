package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/tensor"
)

// textWidth is the number of characters of a text that are shown.
const textWidth = 200

// Render prints the record for people.
func (s *Record) Render(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "record %d", s.Record)
	if s.Split != "" {
		fmt.Fprintf(&b, " (%s)", shell.Line(s.Split))
	}
	if s.Source != "" {
		b.WriteString("  " + shell.Line(s.Source))
	}
	b.WriteByte('\n')
	t := cli.Table{Indent: 2}
	for _, v := range s.Values {
		t.Add(v.Field, v.typeText(), v.String())
	}
	b.WriteString(t.String())
	_, err := io.WriteString(w, b.String())
	return err
}

// typeText returns type and shape.
func (v Value) typeText() string {
	switch {
	case v.Text != nil:
		return "text"
	case v.Image != nil:
		return "image file"
	case v.Images != nil:
		return units.Counted(int64(len(v.Images)), "image file")
	case len(v.Shape) == 0:
		return v.DType.String()
	}
	return v.DType.String() + " " + v.Shape.String()
}

// String returns the value in one line. Of an array that is not shown as a whole, it adds minimum,
// maximum and mean.
func (v Value) String() string {
	switch {
	case v.Text != nil:
		return cli.Shorten(fmt.Sprintf("%q", *v.Text), textWidth)
	case v.Image != nil:
		return v.Image.String()
	case v.Images != nil:
		return strings.Join(dataset.Map(v.Images, (*ImageFile).String), "; ")
	case v.Class != "":
		return string(v.Elements[0]) + " " + shell.Line(v.Class)
	case len(v.Shape) == 0:
		return strings.Trim(string(v.Elements[0]), `"`)
	}
	text := v.list()
	if m := v.Moments; m != nil && len(v.Elements) < v.Shape.Elems() && v.DType != tensor.Bool {
		text += fmt.Sprintf("  min %s, max %s, mean %s", cli.Number(m.Min), cli.Number(m.Max), cli.Decimal(m.Mean))
		if m.NonFinite > 0 {
			text += fmt.Sprintf(", %s not finite", units.Count(m.NonFinite))
		}
	}
	return text
}

// list returns the elements as NumPy prints them.
func (v Value) list() string {
	parts := dataset.Map(v.Elements, func(e json.RawMessage) string { return strings.Trim(string(e), `"`) })
	if len(parts) < v.Shape.Elems() {
		parts = append(parts, "...")
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// String returns format and size, or why the image cannot be read.
func (f *ImageFile) String() string {
	size := units.Bytes(int64(f.Bytes))
	if f.Problem != "" {
		return size + ", cannot be read: " + shell.Line(f.Problem)
	}
	return fmt.Sprintf("%s, %d x %d pixels, %s", f.Format, f.Width, f.Height, size)
}
