package preprocess

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/tensor"
)

// printText writes the summary of a run for people. It is written as one text, so that shell.Lines
// sees whole lines.
func printText(out io.Writer, s *prepare.Summary) error {
	w := new(strings.Builder)
	printLines(w, s)
	_, err := io.WriteString(out, shell.Lines(w.String()))
	return err
}

// printLines writes the lines of the summary, most of them indented under the name of DEST: an
// 8-letter column names the subject of a line. A part of a run with --world-size ends with the
// command that merges the parts; every other run ends with the command that shows the dataset.
func printLines(w io.Writer, s *prepare.Summary) {
	took := time.Duration(s.Seconds * float64(time.Second))
	fmt.Fprintf(w, "%s: %s, %s, %s\n", shell.Line(s.Dest), units.Counted(s.Records, "record"), units.Bytes(s.Bytes),
		prepare.FormatNames[s.Format])
	printFields(w, s)
	if s.Classes == nil && s.Source.Kind == "imagefolder" {
		fmt.Fprintf(w, "  %-8s none, as the images are in no class folders\n", "labels")
	}
	fmt.Fprintf(w, "  %-8s %s, %s from %s\n", "source", units.Counted(s.Source.Samples, "sample"),
		units.Bytes(s.Source.Bytes), s.Source.Path)
	if took > 0 {
		fmt.Fprintf(w, "  %-8s %s, %s, %s\n", "time", units.Duration(took), rate(s.Source.Samples, took, s.Unit),
			units.Counted(int64(s.Workers), "worker"))
	}
	if s.PeakMemory > 0 {
		fmt.Fprintf(w, "  %-8s %s at most\n", "memory", units.Bytes(s.PeakMemory))
	}
	fmt.Fprintf(w, "  %-8s %s\n", "decoder", s.Decoder)
	printStorage(w, s)
	printBuild(w, s)
	printIgnored(w, s)
	printSkipped(w, s)
	for _, h := range s.Hints {
		fmt.Fprintf(w, "note: %s\n", shell.Line(h))
	}
	if s.Part != nil {
		fmt.Fprintf(w, "When all %d parts are complete: %s\n", s.Part.WorldSize,
			shell.On("preprocess merge", s.Part.Dest))
		return
	}
	fmt.Fprintf(w, "Look at it with: %s\n", shell.On("inspect", s.Dest))
}

// printFields writes a line for each field, with the types below each other. The field of source
// names, which the user did not ask for by name, comes last and in words.
func printFields(w io.Writer, s *prepare.Summary) {
	width := 8
	names := ""
	for _, f := range s.Fields {
		if f.Content == tensor.SourceName {
			names = f.Name
			continue
		}
		width = max(width, len(f.Name))
	}
	for _, f := range s.Fields {
		if f.Name != names {
			fmt.Fprintf(w, "  %-*s %s%s\n", width, f.Name, f.Type(), f.Meaning())
		}
	}
	if names != "" {
		fmt.Fprintf(w, "  %-*s of the source's files, as the field %s\n", width, "names", names)
	}
}

// rate returns how fast n records were made, such as "120 images/s": unit is what the summary calls
// records.
func rate(n int64, took time.Duration, unit string) string {
	return strings.TrimSuffix(units.Rate(n, took), "/s") + " " + unit + "/s"
}

// printIgnored names files in the source that are no samples. One name is enough to tell stray
// files from images that were not recognized.
func printIgnored(w io.Writer, s *prepare.Summary) {
	switch n := s.Source.Ignored; {
	case n == 1:
		fmt.Fprintf(w, "  %-8s 1 file that is not an image: %s\n", "ignored", shell.Line(s.Source.FirstIgnored))
	case n > 1:
		fmt.Fprintf(w, "  %-8s %s files that are not images, first: %s\n", "ignored", units.Count(n),
			shell.Line(s.Source.FirstIgnored))
	}
}

// printBuild prints the options that differ from a plain run.
func printBuild(w io.Writer, s *prepare.Summary) {
	var parts []string
	if p := s.Part; p != nil {
		fmt.Fprintf(w, "  %-8s %d of %d, samples [%d, %d) of %d\n", "part", p.Rank, p.WorldSize, p.From,
			p.To, p.Samples)
	}
	for _, p := range s.Splits {
		parts = append(parts, p.Name+" "+units.Count(p.Records))
	}
	if parts != nil {
		by := ""
		if t := s.Stratified; t != nil {
			by = fmt.Sprintf("; every class of %s has its shares (%s)", shell.Line(t.Field), prepare.CountClasses(t.Classes))
		}
		fmt.Fprintf(w, "  %-8s %s%s\n", "splits", shell.Line(strings.Join(parts, ", ")), by)
	}
	if s.Duplicates > 0 {
		fmt.Fprintf(w, "  %-8s %s left out as duplicates; %s.skipped.jsonl lists them\n", "dedup",
			units.Counted(s.Duplicates, "sample"), filepath.Clean(s.Dest))
	}
	if s.Resumed > 0 {
		fmt.Fprintf(w, "  %-8s after %s of an earlier run\n", "resumed", units.Counted(s.Resumed, "record"))
	}
}

// skippedShown is how many skipped samples are listed; a file beside the dataset lists all.
const skippedShown = 5

// printSkipped writes how many samples --on-error skip left out, by kind of error, and names the
// first of these samples.
func printSkipped(w io.Writer, s *prepare.Summary) {
	if len(s.Skipped) == 0 {
		return
	}
	fmt.Fprintf(w, "  %-8s %s of %s samples: %s\n", "skipped", units.Count(int64(len(s.Skipped))),
		units.Count(s.Source.Samples), countKinds(s))
	for _, k := range s.Skipped[:min(skippedShown, len(s.Skipped))] {
		fmt.Fprintf(w, "           %s: %s\n", shell.Line(k.Sample), shell.Line(k.Reason))
	}
	if more := len(s.Skipped) - skippedShown; more > 0 {
		fmt.Fprintf(w, "           and %s more; %s.skipped.jsonl lists all\n", units.Count(int64(more)),
			filepath.Clean(s.Dest))
	}
}

// countKinds returns the kinds of errors with their counts, the most frequent first.
func countKinds(s *prepare.Summary) string {
	var parts []string
	for _, k := range skipKinds(s.SkippedKinds) {
		parts = append(parts, units.Count(s.SkippedKinds[k])+" "+k)
	}
	return strings.Join(parts, ", ")
}

// printStorage writes how well each compressed array was compressed: the third number is the stored
// size relative to the original.
func printStorage(w io.Writer, s *prepare.Summary) {
	for _, name := range slices.Sorted(maps.Keys(s.Storage)) {
		a := s.Storage[name]
		shuffle := ""
		if a.Filter == "gzip" {
			shuffle = map[bool]string{true: " with shuffle", false: " without shuffle"}[a.Shuffle]
		}
		fmt.Fprintf(w, "  %-8s %s: %s of %s, %.3f, by %s level %d%s, %s a chunk\n", "stored", name,
			units.Bytes(a.Stored), units.Bytes(a.Bytes), float64(a.Stored)/float64(max(1, a.Bytes)), a.Filter, a.Level,
			shuffle, units.Counted(a.ChunkRows, "row"))
	}
}

// skipKinds returns the kinds of errors of skipped samples, the most frequent first and equal ones
// by name.
func skipKinds(kinds map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(kinds), func(x, y string) int {
		return cmp.Or(cmp.Compare(kinds[y], kinds[x]), cmp.Compare(x, y))
	})
}
