package inspect

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/shell"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// TextOptions says how much a Summary prints.
type TextOptions struct {
	Classes int // of a field at most; 0 means all
}

func (o TextOptions) problems() []string {
	if o.Classes < 0 {
		return []string{"--classes cannot be negative"}
	}
	return nil
}

// skippedShown is how many skipped samples a person wants to see.
const skippedShown = 5

// Render prints the summary for people.
func (s *Summary) Render(w io.Writer, opts TextOptions) error {
	var b strings.Builder
	s.renderHead(&b)
	s.renderFields(&b)
	s.renderSplits(&b)
	s.renderLengths(&b)
	for _, f := range s.Fields {
		renderClasses(&b, f, opts.Classes)
	}
	s.renderStatistics(&b)
	for _, f := range s.Fields {
		renderNormalization(&b, f)
	}
	s.renderOrigin(&b)
	s.renderSkipped(&b)
	renderTree(&b, s.Tree)
	renderStorage(&b, s.Tree)
	renderReading(&b, s.Tree)
	renderRepacks(&b, s.Repacks)
	renderConversions(&b, s.Conversions)
	s.renderPython(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Summary) renderHead(b *strings.Builder) {
	fmt.Fprintf(b, "%s\n", printable(s.Path))
	t := table{indent: 2}
	t.add("format", s.formatText())
	if len(s.Fields) > 0 {
		t.add("records", cli.Count(s.Records))
	}
	t.add("size", s.sizeText())
	if s.HDF5 != nil && s.HDF5.WriteOpen {
		t.add("writer", "at work, or it ended without closing the file, which h5py then opens after: "+cmp.Or(shell.Command("h5clear -s", s.Path), "h5clear -s FILE"))
	}
	if s.Generation > 1 {
		t.add("generation", fmt.Sprintf("%s, so it was added to %s", cli.Count(int64(s.Generation)), times(s.Generation-1)))
	}
	if s.ID != "" {
		t.add("id", s.ID)
	}
	if s.Unmappable != "" {
		t.add("maps", "not as a whole: "+printable(s.Unmappable))
	}
	b.WriteString(t.String())
}

func (s *Summary) formatText() string {
	switch {
	case s.View:
		return "HDF5, a view of a flat dataset"
	case s.HDF5 != nil:
		text := fmt.Sprintf("HDF5 with superblock %d", s.HDF5.Superblock)
		if n := s.HDF5.UserBlock; n > 0 {
			text += fmt.Sprintf(" behind %s of the user's", cli.Counted(n, "byte"))
		}
		return text + ", not made by penstock"
	case s.Format == "flat":
		return fmt.Sprintf("flat folder, version %d", s.Version)
	}
	return fmt.Sprintf("HDF5, version %d", s.Version)
}

func (s *Summary) sizeText() string {
	text := cli.Bytes(s.DiskBytes)
	if len(s.Shards) > 0 {
		text += " in " + cli.Counted(int64(len(s.Shards)), "shard")
	}
	if len(s.Shards) < 2 {
		return text
	}
	largest, words := s.Shards[0].Count, " of "
	for _, shard := range s.Shards[:len(s.Shards)-1] {
		if shard.Count != largest {
			words = " of up to "
		}
		largest = max(largest, shard.Count)
	}
	return text + words + cli.Count(largest) + " records"
}

func (s *Summary) renderFields(b *strings.Builder) {
	if len(s.Fields) == 0 {
		return
	}
	t := table{indent: 2, align: "lllrr"}
	t.add("", "type", "shape", "a record", "all")
	for _, f := range s.Fields {
		t.add(printable(f.Name), f.DType.String(), f.shapeText(), s.recordText(f), cli.Bytes(f.Bytes))
	}
	fmt.Fprintf(b, "\nFields\n%s", &t)
}

// shapeText writes the shape of a record; where it has any number of rows, that is n.
func (f Field) shapeText() string {
	switch {
	case f.Ragged:
		text := tensor.Shape(append(tensor.Shape{-1}, f.Shape...)).String()
		return strings.TrimSpace(strings.Replace(text, "-1", "n", 1) + " " + f.Content)
	case f.Layout != "":
		return f.Shape.String() + " " + f.Layout
	case len(f.Shape) == 0:
		return "scalar"
	}
	return f.Shape.String()
}

// recordText is the size of a record, of an average one where they differ.
func (s *Summary) recordText(f Field) string {
	if !f.Ragged {
		return cli.Bytes(f.RecordBytes)
	}
	return "~" + cli.Bytes((f.Rows*f.RecordBytes+s.Records/2)/max(1, s.Records))
}

func (s *Summary) renderSplits(b *strings.Builder) {
	if len(s.Splits) == 0 {
		return
	}
	t := table{indent: 2, align: "lrrl"}
	for _, split := range s.Splits {
		share := strconv.FormatFloat(100*float64(split.Records)/float64(max(1, s.Records)), 'f', 1, 64)
		t.add(printable(split.Name), cli.Count(split.Records), share+" %", bar(split.Records, s.Records, barWidth))
	}
	fmt.Fprintf(b, "\nSplits\n%s", &t)
}

// renderLengths prints how many rows the records of ragged fields have.
func (s *Summary) renderLengths(b *strings.Builder) {
	t := table{indent: 2, align: "lrrrrr"}
	t.add("", "min", "max", "mean", "std", "all")
	for _, f := range s.Fields {
		if !f.Ragged {
			continue
		}
		row := []string{printable(f.Name), "", "", decimal(float64(f.Rows) / float64(max(1, s.Records))), ""}
		if f.Statistics != nil && f.Statistics.Lengths != nil {
			n := f.Statistics.Lengths
			row = []string{printable(f.Name), limit(n.Min), limit(n.Max), decimal(n.Mean), decimal(n.Std)}
		}
		t.add(append(row, cli.Count(f.Rows))...)
	}
	if len(t.rows) > 1 {
		fmt.Fprintf(b, "\nRows a record\n%s", &t)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return cli.Counted(int64(n), "time")
}

func renderNormalization(b *strings.Builder, f Field) {
	n := f.Normalization
	if n == nil {
		return
	}
	done := "recorded, to be applied by the reader"
	if n.Applied {
		done = "applied: the stored values went through it"
	}
	t := table{indent: 2, align: "lrrr"}
	t.add(append([]string{"mean"}, decimals(n.Mean)...)...)
	t.add(append([]string{"std"}, decimals(n.Std)...)...)
	fmt.Fprintf(b, "\nNormalisation of %s, %s\n  (x/%v - mean) / std\n%s", printable(f.Name), done, n.Scale, &t)
}

func decimals(values []float64) (out []string) {
	for _, v := range values {
		out = append(out, decimal(v))
	}
	return out
}

// decimal writes a number with four places after the point, or in a form that shows it.
func decimal(v float64) string {
	if a := abs(v); a != 0 && (a < 0.001 || a >= 1e7) {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

func abs(v float64) float64 {
	if v < 0 {
		return -v
	}
	return v
}

func (s *Summary) renderOrigin(b *strings.Builder) {
	if s.Recipe != nil {
		renderRecipe(b, s.Recipe)
	}
	if src := s.Source; src != nil {
		fmt.Fprintf(b, "\nSource\n  %s %q, %s, %s\n  %s\n", printable(src.Kind), src.Name,
			cli.Counted(src.Samples, "sample"), cli.Bytes(src.Bytes), printable(src.Fingerprint))
	}
}

func (s *Summary) renderSkipped(b *strings.Builder) {
	n := len(s.Skipped)
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\nSkipped: %s\n", cli.Counted(int64(n), "sample"))
	for _, k := range s.Skipped[:min(n, skippedShown)] {
		fmt.Fprintf(b, "  %s\n", skippedLine(k))
	}
	if n > skippedShown {
		fmt.Fprintf(b, "  ... and %s more (--json lists them)\n", cli.Count(int64(n-skippedShown)))
	}
}

// skippedLine names the sample once: a reason that starts with it is not given it again.
func skippedLine(k store.Skipped) string {
	if strings.HasPrefix(k.Reason, k.Sample) {
		return printable(k.Reason)
	}
	return printable(k.Sample + ": " + k.Reason)
}

func (s *Summary) renderPython(b *strings.Builder) {
	if len(s.Fields) == 0 {
		return
	}
	t := table{indent: 2}
	for _, f := range s.Fields {
		line := "= " + f.Python
		if f.DType == tensor.BFloat16 {
			line += "  # bfloat16, as uint16 bits: NumPy has no such type"
		}
		t.add(printable(identifier(f.Name)), line)
		if f.Ragged {
			t.add(printable(identifier(f.Name+"_offsets")), "= "+f.Offsets)
		}
	}
	fmt.Fprintf(b, "\nIn Python\n%s", &t)
}

// identifier makes a name of the field that Python accepts.
func identifier(name string) string {
	id := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if id == "" || id[0] >= '0' && id[0] <= '9' {
		id = "_" + id
	}
	return id
}
