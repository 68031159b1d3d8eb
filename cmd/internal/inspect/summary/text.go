package summary

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// skippedShown is the number of skipped samples that are shown.
const skippedShown = 5

// Render prints the summary, with at most `classes` classes of a field, 0 meaning all.
func (s *Summary) Render(w io.Writer, classes int) error {
	var b strings.Builder
	s.renderHead(&b)
	s.renderFields(&b)
	s.renderSplits(&b)
	s.renderLengths(&b)
	for _, f := range s.Fields {
		renderClasses(&b, f, classes)
	}
	s.renderStatistics(&b)
	for _, f := range s.Fields {
		renderNormalization(&b, f)
	}
	s.renderOrigin(&b)
	s.renderSkipped(&b)
	Render(&b, s.Tree, s.Origin, s.Repacks, s.Conversions)
	s.renderPython(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// renderHead prints what is known of the dataset as a whole.
func (s *Summary) renderHead(b *strings.Builder) {
	fmt.Fprintf(b, "%s\n", shell.Line(s.Path))
	t := cli.Table{Indent: 2}
	t.Add("format", s.FormatText())
	if len(s.Fields) > 0 {
		t.Add("records", s.RecordsText())
	}
	t.Add("size", s.SizeText())
	if s.HDF5 != nil && s.HDF5.WriteOpen {
		t.Add("writer", "at work, or it ended without closing the file, which h5py then opens after: "+
			cmp.Or(shell.Command("h5clear -s", s.Path), "h5clear -s FILE"))
	}
	if s.Generation > 1 {
		t.Add("generation", s.GenerationText())
	}
	if s.ID != "" {
		t.Add("id", s.ID)
	}
	switch {
	case s.Samples != nil:
		t.Add("records", s.Samples.recordsText())
		if s.Samples.Lists != nil {
			t.Add("lists", s.Samples.listsText())
		}
	case s.Unread != "":
		t.Add("records", s.Unread)
	case s.Unmappable != "":
		t.Add("maps", "not as a whole: "+s.Unmappable)
	}
	b.WriteString(t.String())
	if s.Samples != nil {
		b.WriteString(fieldsText(s.Samples.Fields))
	}
}

// RecordsText says how many records there are, and how many were deleted.
func (s *Summary) RecordsText() string {
	text := units.Count(s.Records)
	if s.Deleted > 0 {
		text += fmt.Sprintf(", and %s deleted, which sizes and statistics include", units.Count(s.Deleted))
	}
	return text
}

// FormatText returns the name and version of the format.
func (s *Summary) FormatText() string {
	switch {
	case s.View:
		return "HDF5, a view of a flat dataset"
	case s.HDF5 != nil:
		text := fmt.Sprintf("HDF5 with superblock %d", s.HDF5.Superblock)
		if n := s.HDF5.UserBlock; n > 0 {
			text += fmt.Sprintf(" after a user block of %s", units.Counted(n, "byte"))
		}
		return text + ", not made by penstock"
	case s.Format == "flat":
		return fmt.Sprintf("flat folder, version %d", s.Version)
	}
	return fmt.Sprintf("%s, version %d", map[string]string{"hdf5": "HDF5", "zarr": "Zarr"}[s.Format], s.Version)
}

// SizeText returns the bytes on disk and the number of shards. The last shard may be shorter, so
// the others decide about "up to".
func (s *Summary) SizeText() string {
	text := units.Bytes(s.DiskBytes)
	if len(s.Shards) > 0 {
		text += " in " + units.Counted(int64(len(s.Shards)), "shard")
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
	return text + words + units.Count(largest) + " records"
}

// renderFields prints the table of fields.
func (s *Summary) renderFields(b *strings.Builder) {
	if len(s.Fields) == 0 {
		return
	}
	t := cli.Table{Indent: 2, Align: "lllrr"}
	t.Add("", "type", "shape", "a record", "all")
	for _, f := range s.Fields {
		t.Add(f.Name, f.DType.String(), f.ShapeText(), s.RecordText(f), units.Bytes(f.Bytes))
	}
	fmt.Fprintf(b, "\nFields\n%s", &t)
}

// ShapeText writes the shape of a record.
func (f Field) ShapeText() string {
	return dataset.ShapeText(f.spec())
}

// spec returns the type of the field.
func (f Field) spec() tensor.Spec {
	return tensor.Spec{Name: f.Name, DType: f.DType, Shape: f.Shape, Ragged: f.Ragged, Layout: f.Layout,
		Content: f.Content,
		Image:   f.Image, Instances: f.Instances}
}

// RecordText returns the size of a record, of an average record if the field is ragged.
func (s *Summary) RecordText(f Field) string {
	if !f.Ragged {
		return units.Bytes(f.RecordBytes)
	}
	return "~" + units.Bytes((f.Rows*f.RecordBytes+(s.Records+s.Deleted)/2)/max(1, s.Records+s.Deleted))
}

// renderSplits prints the sizes of the splits.
func (s *Summary) renderSplits(b *strings.Builder) {
	if len(s.Splits) == 0 {
		return
	}
	t := cli.Table{Indent: 2, Align: "lrrl"}
	for _, split := range s.Splits {
		share := strconv.FormatFloat(100*float64(split.Records)/float64(max(1, s.Records)), 'f', 1, 64)
		t.Add(split.Name, units.Count(split.Records), share+" %", cli.Bar(split.Records, s.Records, cli.BarWidth))
	}
	fmt.Fprintf(b, "\nSplits\n%s", &t)
}

// renderLengths prints how many rows the records of ragged fields have.
func (s *Summary) renderLengths(b *strings.Builder) {
	t := cli.Table{Indent: 2, Align: "lrrrrr"}
	t.Add("", "min", "max", "mean", "std", "all")
	for _, f := range s.Fields {
		if !f.Ragged {
			continue
		}
		row := []string{f.Name, "", "", cli.Decimal(float64(f.Rows) / float64(max(1, s.Records))), ""}
		if f.Statistics != nil && f.Statistics.Lengths != nil {
			n := f.Statistics.Lengths
			row = []string{f.Name, cli.Number(n.Min), cli.Number(n.Max), cli.Decimal(n.Mean), cli.Decimal(n.Std)}
		}
		t.Add(append(row, units.Count(f.Rows))...)
	}
	if len(t.Rows) > 1 {
		fmt.Fprintf(b, "\nRows a record\n%s", &t)
	}
}

// GenerationText returns the number of the generation and the change that made it.
func (s *Summary) GenerationText() string {
	text := units.Count(int64(s.Generation))
	if c := s.Change; c != nil && c.Operation != "" {
		text += ": " + strings.Join(append([]string{c.Operation}, c.Columns...), " ")
		if c.From > 0 {
			text += " " + units.Count(int64(c.From))
		}
		if c.Records > 0 {
			text += " " + units.Counted(c.Records, "record")
		}
	}
	return shell.Line(text)
}

// renderNormalization prints the formula of a field's normalization and who applies it.
func renderNormalization(b *strings.Builder, f Field) {
	n := f.Normalization
	if n == nil {
		return
	}
	done := "recorded, to be applied by the reader"
	if n.Applied {
		done = "applied: the stored values went through it"
	}
	t := cli.Table{Indent: 2, Align: "lrrr"}
	t.Add(append([]string{"mean"}, decimals(n.Mean)...)...)
	t.Add(append([]string{"std"}, decimals(n.Std)...)...)
	fmt.Fprintf(b, "\nNormalization of %s, %s\n  (x/%v - mean) / std\n%s", shell.Line(f.Name), done, n.Scale, &t)
}

// decimals formats numbers.
func decimals(values []float64) (out []string) {
	for _, v := range values {
		out = append(out, cli.Decimal(v))
	}
	return out
}

// renderOrigin prints the recipe and the source of a dataset of penstock.
func (s *Summary) renderOrigin(b *strings.Builder) {
	if s.Recipe != nil {
		renderRecipe(b, s.Recipe)
	}
	if src := s.Source; src != nil {
		fmt.Fprintf(b, "\nSource\n  %s %q, %s, %s\n  %s\n", shell.Line(src.Kind), src.Name,
			units.Counted(src.Samples, "sample"), units.Bytes(src.Bytes), shell.Line(src.Fingerprint))
	}
}

// renderSkipped prints the first skipped samples.
func (s *Summary) renderSkipped(b *strings.Builder) {
	n := len(s.Skipped)
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\nSkipped: %s\n", units.Counted(int64(n), "sample"))
	for _, k := range s.Skipped[:min(n, skippedShown)] {
		fmt.Fprintf(b, "  %s\n", skippedLine(k))
	}
	if n > skippedShown {
		fmt.Fprintf(b, "  ... and %s more (--json lists them)\n", units.Count(int64(n-skippedShown)))
	}
}

// skippedLine returns the sample and the reason. Some reasons begin with the name of the sample
// already.
func skippedLine(k store.Skipped) string {
	if strings.HasPrefix(k.Reason, k.Sample) {
		return shell.Line(k.Reason)
	}
	return shell.Line(k.Sample + ": " + k.Reason)
}

// renderPython prints lines of Python that open the dataset and each of its fields.
func (s *Summary) renderPython(b *strings.Builder) {
	if len(s.Fields) == 0 {
		return
	}
	t := cli.Table{Indent: 2}
	t.Add("train", fmt.Sprintf("= penstock.DataLoader(%s, batch_size=64, shuffle=True)", dataset.Quote(s.Path)))
	if !strings.Contains(s.Path, "://") {
		t.Add("ds", fmt.Sprintf("= penstock.open(%s)", dataset.Quote(s.Path)))
	}
	for _, f := range s.Fields {
		if f.Python == "" {
			continue
		}
		line := "= " + f.Python
		if f.DType == tensor.BFloat16 {
			line += "  # bfloat16, as uint16 bits: NumPy has no such type"
		}
		t.Add(dataset.Identifier(f.Name), line)
		if f.Ragged {
			t.Add(dataset.Identifier(f.Name+"_offsets"), "= "+f.Offsets)
		}
	}
	fmt.Fprintf(b, "\nIn Python\n%s", &t)
}
