package summary

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Raw describes a source of raw samples, as the loader reads it.
type Raw struct {
	Path    string        `json:"path"`
	name    string        // the last element of the path
	Kind    string        `json:"kind"` // such as "imagefolder"
	Records int           `json:"records"`
	Splits  []string      `json:"splits,omitempty"`
	Lists   []string      `json:"lists,omitempty"` // of records in the file; a list can be read as a split
	Fields  []store.Field `json:"fields"`
	Ignored int64         `json:"ignored"` // files that are not samples
	Hints   []string      `json:"hints,omitempty"`
	Where   string        `json:"where,omitempty"` // where the records are, as preprocess --records has it
}

// DescribeRaw lists a source and reads its first sample, which decides the types.
func DescribeRaw(ctx context.Context, path string) (*Raw, error) {
	src, err := raw.Open(ctx, path, raw.Options{})
	if err != nil {
		return nil, err
	}
	info := src.Info()
	var lists []string
	for _, s := range info.Lists {
		lists = append(lists, s.Name)
	}
	return &Raw{
		Path: src.Name(), name: info.Name, Kind: info.Kind, Records: src.Len(), Splits: info.Splits, Lists: lists,
		Fields: src.Schema().Fields, Ignored: info.Ignored.Count, Hints: info.Hints, Where: info.Records,
	}, src.Close()
}

// recordsText says how many records there are, where they are, and which other choice --records
// has.
func (r *Raw) recordsText() string {
	text := units.Count(int64(r.Records))
	if len(r.Hints) > 0 {
		text += ": " + strings.Join(r.Hints, "; ")
	}
	if r.Where == "" {
		return text
	}
	other, isRows := strings.CutSuffix(r.Where, "[:]")
	if !isRows {
		other += "[:]"
	}
	return text + "; the other choice is " + shell.Command("--records", other)
}

// listsText names the lists of records, and says how one is read.
func (r *Raw) listsText() string {
	return source.Enumerate(r.Lists, 8) + fmt.Sprintf("; split=%q in Python reads one", r.Lists[0])
}

// Render prints the source, and the command that makes a dataset of it.
func (r *Raw) Render(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", shell.Line(r.Path))
	t := cli.Table{Indent: 2}
	t.Add("format", "raw samples ("+r.Kind+"), not prepared")
	t.Add("records", units.Count(int64(r.Records)))
	if r.Splits != nil {
		t.Add("splits", source.Enumerate(r.Splits, 8))
	}
	if r.Ignored > 0 {
		t.Add("ignored", units.Counted(r.Ignored, "other file"))
	}
	b.WriteString(t.String())
	b.WriteString(fieldsText(r.Fields))
	for _, h := range r.Hints {
		fmt.Fprintf(&b, "\nnote: %s\n", shell.Line(h))
	}
	fmt.Fprintf(&b, "\nIt can be loaded as it is; to make a dataset of it, run: %s\n", r.preparing())
	_, err := io.WriteString(w, b.String())
	return err
}

// fieldsText returns the table of fields of a source whose sizes are not known.
func fieldsText(fields []store.Field) string {
	t := cli.Table{Indent: 2}
	t.Add("", "type", "shape", "")
	for _, f := range fields {
		classes := ""
		if f.Classes != nil {
			classes = units.Count(int64(len(f.Classes))) + " classes: " + shell.Line(source.Enumerate(f.Classes, 5))
		}
		t.Add(f.Name, f.DType.String(), dataset.ShapeText(f.Spec), classes)
	}
	return "\nFields\n" + t.String()
}

// preparing returns the command that makes a dataset of the source, in the current folder.
func (r *Raw) preparing() string {
	command, base := "preprocess", r.name
	for path := r.Path; strings.ContainsAny(base, "*?[{") && path != filepath.Dir(path); path = filepath.Dir(path) {
		base = source.BaseName(filepath.Dir(path)) // of a pattern: the folder of the files
	}
	if slices.ContainsFunc(r.Fields, func(f store.Field) bool { return f.Content == tensor.Image }) {
		command += " --keep-encoded"
	}
	return shell.Penstock(command, source.WithRecords(r.Path, r.Where), strings.TrimSuffix(base, filepath.Ext(base))+"-ds")
}
