package preprocess

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess/part"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Summary says what Run made. Its JSON is the output of --json; keys are added but not
// changed.
type Summary struct {
	Dest         string                    `json:"dest"`
	Format       string                    `json:"format"` // flat or hdf5
	ID           string                    `json:"id"`     // of the dataset
	Records      int64                     `json:"records"`
	Bytes        int64                     `json:"bytes"` // of all files of the dataset
	Fields       []FieldSummary            `json:"fields"`
	Classes      []string                  `json:"classes"` // null without labels
	Source       SourceSummary             `json:"source"`
	Skipped      []store.Skipped           `json:"skipped"`
	SkippedKinds map[string]int64          `json:"skipped_kinds"` // how many for which kind of reason
	Duplicates   int64                     `json:"duplicates"`    // samples left out as their content was there before
	Resumed      int64                     `json:"resumed"`       // records of a run before this one
	Splits       []SplitSummary            `json:"splits,omitempty"`
	Stratified   *Stratified               `json:"stratified,omitempty"`
	Part         *PartSummary              `json:"part,omitempty"`    // which part of the dataset it is, if it is not all
	PeakMemory   int64                     `json:"peak_memory"`       // bytes of the whole process, 0 if not known
	Storage      map[string]*store.Storage `json:"storage,omitempty"` // by array, of those that are compressed
	Workers      int                       `json:"workers"`
	Decoder      string                    `json:"decoder"`
	Seconds      float64                   `json:"seconds"`

	unit  string // what samples are called
	kinds []string
	hints []string
}

// SplitSummary says how many records a split has.
type SplitSummary struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
}

// Stratified says which values were the classes of --stratify.
type Stratified struct {
	Field   string `json:"field"`
	Classes int    `json:"classes"` // how many there are
}

// FieldSummary describes a field of the dataset.
type FieldSummary struct {
	Name   string       `json:"name"`
	DType  string       `json:"dtype"`
	Shape  tensor.Shape `json:"shape"` // of a record
	Layout string       `json:"layout,omitempty"`

	Ragged        bool                 `json:"ragged,omitempty"`  // any number of rows of Shape
	Content       string               `json:"content,omitempty"` // store.Text or store.Image
	Classes       []string             `json:"classes,omitempty"`
	Normalization *store.Normalization `json:"normalization,omitempty"`
}

func fieldSummary(f store.Field) FieldSummary {
	return FieldSummary{f.Name, f.DType.String(), f.Shape, f.Layout, f.Ragged, f.Content, f.Classes, f.Normalization}
}

// typeText writes type and shape, with a star for any number of rows.
func (f FieldSummary) typeText() string {
	switch {
	case !f.Ragged:
		return fmt.Sprintf("%s %v", f.DType, f.Shape)
	case len(f.Shape) == 0:
		return f.DType + " (*,)"
	}
	return f.DType + " (*, " + strings.Trim(f.Shape.String(), "(,)") + ")"
}

// SourceSummary says what was read.
type SourceSummary struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Samples int64  `json:"samples"`
	Bytes   int64  `json:"bytes"`
	Ignored int64  `json:"ignored"` // files that are not samples

	firstIgnored string
}

// newSummary describes what a run has made; the manifest is nil where that has no records.
func newSummary(c Config, r *run, m *store.Manifest, took time.Duration) (*Summary, error) {
	s := &Summary{
		Dest: c.Dest, Format: c.format(),
		Classes: classesOf(r.info.Fields), Source: sourceSummary(c, r.info, r.log),
		Skipped: append([]store.Skipped{}, r.log.listed()...), SkippedKinds: r.log.kinds,
		Workers: c.Workers, Decoder: imagefile.Backend(), Seconds: took.Seconds(),
		unit: r.info.Unit, kinds: kindNames(r.log.kinds), hints: r.info.Hints,
	}
	s.Duplicates, s.Resumed, s.PeakMemory = r.log.duplicates, r.resumed, usage.PeakMemory()
	if m == nil {
		return s, nil
	}
	var err error
	s.ID, s.Records = m.ID, m.Records
	s.Bytes, err = treeBytes(c.Dest)
	s.Storage = m.Storage
	s.hints = append(slices.Clip(s.hints), c.emptySplits(m)...)
	if by := r.log.stratum; by != "" {
		s.Stratified = &Stratified{by, r.log.splitter.Classes()}
	}
	for _, p := range m.Splits {
		s.Splits = append(s.Splits, SplitSummary{p.Name, p.Records()})
	}
	for _, f := range m.Fields {
		s.Fields = append(s.Fields, fieldSummary(f))
	}
	return s, err
}

// classesOf returns the names of the first field that has classes.
func classesOf(fields []source.Field) []string {
	for _, f := range fields {
		if f.Classes != nil {
			return f.Classes
		}
	}
	return nil
}

func sourceSummary(c Config, info source.Info, b *runLog) SourceSummary {
	return SourceSummary{
		Path: c.Source, Kind: info.Kind, Samples: b.samples, Bytes: b.bytes,
		Ignored: info.Ignored.Count, firstIgnored: info.Ignored.First,
	}
}

// treeBytes adds up the files of a dataset.
func treeBytes(path string) (total int64, err error) {
	err = vfs.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// Print writes the summary for people.
func (s *Summary) Print(out io.Writer) error {
	w := new(strings.Builder)
	s.print(w)
	_, err := io.WriteString(out, cli.Printable(w.String()))
	return err
}

func (s *Summary) print(w io.Writer) {
	took := time.Duration(s.Seconds * float64(time.Second))
	fmt.Fprintf(w, "%s: %s, %s, %s\n", s.Dest, cli.Counted(s.Records, "record"), cli.Bytes(s.Bytes), formatNames[s.Format])
	s.printFields(w)
	if s.Classes == nil && s.Source.Kind == "imagefolder" {
		fmt.Fprintf(w, "  %-8s none, as the images are in no class folders\n", "labels")
	}
	fmt.Fprintf(w, "  %-8s %s, %s from %s\n", "source", cli.Counted(s.Source.Samples, "sample"), cli.Bytes(s.Source.Bytes), s.Source.Path)
	if took > 0 {
		fmt.Fprintf(w, "  %-8s %s, %s, %s\n", "time", cli.Duration(took), rate(s.Source.Samples, took, s.unit), cli.Counted(int64(s.Workers), "worker"))
	}
	if s.PeakMemory > 0 {
		fmt.Fprintf(w, "  %-8s %s at most\n", "memory", cli.Bytes(s.PeakMemory))
	}
	fmt.Fprintf(w, "  %-8s %s\n", "decoder", s.Decoder)
	s.printStorage(w)
	s.printBuild(w)
	s.printIgnored(w)
	s.printSkipped(w)
	for _, h := range s.hints {
		fmt.Fprintf(w, "note: %s\n", shell.Line(h))
	}
	if s.Part != nil {
		fmt.Fprintf(w, "When all %d parts are there: %s\n", s.Part.WorldSize, cmp.Or(shell.Penstock("preprocess merge", s.Part.Dest), shell.Penstock("preprocess merge")))
		return
	}
	fmt.Fprintf(w, "Look at it with: %s\n", cmp.Or(shell.Penstock("inspect", s.Dest), shell.Penstock("inspect")))
}

// printFields writes a line a field, types below each other.
func (s *Summary) printFields(w io.Writer) {
	width := 8
	names := ""
	for _, f := range s.Fields {
		if f.Content == store.SourceName {
			names = f.Name
			continue
		}
		width = max(width, len(f.Name))
	}
	for _, f := range s.Fields {
		if f.Name != names {
			fmt.Fprintf(w, "  %-*s %s%s\n", width, f.Name, f.typeText(), f.meaning())
		}
	}
	if names != "" {
		fmt.Fprintf(w, "  %-*s of the source's files, as the field %s\n", width, "names", names)
	}
}

// rate words how fast records were made.
func rate(n int64, took time.Duration, unit string) string {
	return strings.TrimSuffix(cli.Rate(n, took), "/s") + " " + unit + "/s"
}

var formatNames = map[string]string{part.Flat: "flat folder", part.HDF5: "HDF5 file", part.Zarr: "Zarr"}

// meaning says of a field what shape and type do not.
func (f FieldSummary) meaning() string {
	switch {
	case f.Layout != "":
		return "  " + f.Layout + scale(f)
	case f.Normalization != nil:
		return "  " + strings.TrimPrefix(scale(f), ", ")
	case f.Classes != nil:
		return "  " + countClasses(len(f.Classes)) + ": " + shell.Line(strings.Join(source.Shorten(f.Classes, 6), ", "))
	case f.Content == store.Text:
		return "  text"
	case f.Content == store.Image:
		return "  image files as they are"
	}
	return ""
}

// scale says what the numbers of an image field mean, where they are not 0 to 255.
func scale(f FieldSummary) string {
	n := f.Normalization
	switch {
	case n == nil:
		return ""
	case !n.Applied:
		return fmt.Sprintf(", for the loader to normalize: (x/%v - mean) / std", n.Scale)
	case slices.Max(n.Std) == 1 && slices.Min(n.Std) == 1 && slices.Max(n.Mean) == 0 && slices.Min(n.Mean) == 0:
		return fmt.Sprintf(", x/%v", n.Scale)
	}
	return fmt.Sprintf(", (x/%v - mean) / std", n.Scale)
}

func (s *Summary) printIgnored(w io.Writer) {
	switch n := s.Source.Ignored; {
	case n == 1:
		fmt.Fprintf(w, "  %-8s 1 file that is not an image: %s\n", "ignored", shell.Line(s.Source.firstIgnored))
	case n > 1:
		fmt.Fprintf(w, "  %-8s %s files that are not images, first: %s\n", "ignored", cli.Count(n), shell.Line(s.Source.firstIgnored))
	}
}

// printBuild says what was asked for beside the plain way.
func (s *Summary) printBuild(w io.Writer) {
	var parts []string
	if p := s.Part; p != nil {
		fmt.Fprintf(w, "  %-8s %d of %d, made of samples [%d, %d) of %d\n", "part", p.Rank, p.WorldSize, p.From, p.To, p.Samples)
	}
	for _, p := range s.Splits {
		parts = append(parts, p.Name+" "+cli.Count(p.Records))
	}
	if parts != nil {
		by := ""
		if t := s.Stratified; t != nil {
			by = fmt.Sprintf("; every class of %s has its shares (%s)", shell.Line(t.Field), countClasses(t.Classes))
		}
		fmt.Fprintf(w, "  %-8s %s%s\n", "splits", shell.Line(strings.Join(parts, ", ")), by)
	}
	if s.Duplicates > 0 {
		fmt.Fprintf(w, "  %-8s %s left out, as their content is there already; %s.skipped.jsonl lists them\n", "dedup", cli.Counted(s.Duplicates, "sample"), filepath.Clean(s.Dest))
	}
	if s.Resumed > 0 {
		fmt.Fprintf(w, "  %-8s behind %s of a run before\n", "resumed", cli.Counted(s.Resumed, "record"))
	}
}

const skippedShown = 5

func (s *Summary) printSkipped(w io.Writer) {
	if len(s.Skipped) == 0 {
		return
	}
	fmt.Fprintf(w, "  %-8s %s of %s samples: %s\n", "skipped", cli.Count(int64(len(s.Skipped))), cli.Count(s.Source.Samples), s.countKinds())
	for _, k := range s.Skipped[:min(skippedShown, len(s.Skipped))] {
		fmt.Fprintf(w, "           %s: %s\n", shell.Line(k.Sample), shell.Line(k.Reason))
	}
	if more := len(s.Skipped) - skippedShown; more > 0 {
		fmt.Fprintf(w, "           and %s more; %s.skipped.jsonl lists all\n", cli.Count(int64(more)), filepath.Clean(s.Dest))
	}
}

func (s *Summary) countKinds() string {
	var parts []string
	for _, k := range s.kinds {
		parts = append(parts, cli.Count(s.SkippedKinds[k])+" "+k)
	}
	return strings.Join(parts, ", ")
}

func countClasses(n int) string {
	if n == 1 {
		return "1 class"
	}
	return cli.Count(int64(n)) + " classes"
}

// emptySplits says which splits got no records, and what to do.
func (c Config) emptySplits(m *store.Manifest) (list []string) {
	advice := "--stratify gives it its share to within one record"
	if c.Stratify.Wanted || c.Split == nil {
		advice = "give it more records"
	}
	for _, s := range m.Splits {
		if s.Records() == 0 {
			list = append(list, fmt.Sprintf("the split %s has no records; %s", s.Name, advice))
		}
	}
	return list
}
