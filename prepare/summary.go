package prepare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Summary describes the dataset that Run made. Its JSON is the output of --json; keys are added but not
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
	Duplicates   int64                     `json:"duplicates"`    // samples left out as an earlier one has their content
	Resumed      int64                     `json:"resumed"`       // records of a run before this one
	Splits       []SplitSummary            `json:"splits,omitempty"`
	Stratified   *Stratified               `json:"stratified,omitempty"`
	Part         *PartSummary              `json:"part,omitempty"`    // which part of the dataset it is, if it is not all
	PeakMemory   int64                     `json:"peak_memory"`       // bytes of the whole process, 0 if not known
	Storage      map[string]*store.Storage `json:"storage,omitempty"` // by array, of those that are compressed
	Workers      int                       `json:"workers"`
	Decoder      string                    `json:"decoder"`
	Seconds      float64                   `json:"seconds"`

	Unit  string   `json:"-"` // what samples are called
	Hints []string `json:"-"` // sentences about what looks unusual
}

// SplitSummary is the name and size of a split.
type SplitSummary struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
}

// Stratified names the field of --stratify and its classes.
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

	Ragged        bool                 `json:"ragged,omitempty"`    // any number of rows of Shape
	Content       string               `json:"content,omitempty"`   // one of tensor.Contents
	Image         string               `json:"image,omitempty"`     // that a mask, boxes or keypoints lie on
	Instances     string               `json:"instances,omitempty"` // the group of fields with one number of rows a record
	Classes       []string             `json:"classes,omitempty"`
	Normalization *store.Normalization `json:"normalization,omitempty"`
}

func fieldSummary(f store.Field) FieldSummary {
	return FieldSummary{f.Name, f.DType.String(), f.Shape, f.Layout, f.Ragged, f.Content, f.Image, f.Instances, f.Classes,
		f.Normalization}
}

// Type writes type and shape, with a star for any number of rows.
func (f FieldSummary) Type() string {
	switch {
	case !f.Ragged:
		return fmt.Sprintf("%s %v", f.DType, f.Shape)
	case len(f.Shape) == 0:
		return f.DType + " (*,)"
	}
	return f.DType + " (*, " + strings.Trim(f.Shape.String(), "(,)") + ")"
}

// SourceSummary describes the source.
type SourceSummary struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Samples int64  `json:"samples"`
	Bytes   int64  `json:"bytes"`
	Ignored int64  `json:"ignored"` // files that are not samples

	FirstIgnored string `json:"-"`
}

// summary describes the result of a run; the manifest is nil if it has no records.
func (r *run) summary(m *store.Manifest, took time.Duration) (*Summary, error) {
	s := &Summary{
		Dest: r.Dest, Format: r.DatasetFormat(), Classes: classesOf(r.info.Fields),
		Source: SourceSummary{
			Path: r.Source, Kind: r.info.Kind, Samples: r.log.samples, Bytes: r.log.bytes,
			Ignored: r.info.Ignored.Count, FirstIgnored: r.info.Ignored.First,
		},
		Skipped: append([]store.Skipped{}, r.log.listed()...), SkippedKinds: r.log.kinds,
		Workers: r.Workers, Decoder: imagefile.Backend(), Seconds: took.Seconds(),
		Unit: r.info.Unit, Hints: r.info.Hints,
	}
	s.Duplicates, s.Resumed, s.PeakMemory = r.log.duplicates, r.resumed, usage.PeakMemory()
	if m == nil {
		return s, nil
	}
	var err error
	s.ID, s.Records = m.ID, m.Records
	if r.appendTo != nil {
		s.Bytes = shardBytes(m)
	} else {
		s.Bytes, err = vfs.TreeBytes(r.Dest)
	}
	s.Storage = m.Storage
	s.Hints = append(slices.Clip(s.Hints), r.emptySplits(m)...)
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

// shardBytes returns the bytes of the files that a manifest lists.
func shardBytes(m *store.Manifest) (total int64) {
	for _, s := range m.Shards {
		for _, f := range s.Files {
			total += f.Bytes
		}
	}
	return total
}

// Meaning describes a field beyond its shape and type.
func (f FieldSummary) Meaning() string {
	switch {
	case f.Layout != "":
		return "  " + f.Layout + scale(f)
	case f.Normalization != nil:
		return "  " + strings.TrimPrefix(scale(f), ", ")
	case f.Classes != nil:
		return "  " + CountClasses(len(f.Classes)) + ": " + shell.Line(strings.Join(source.Shorten(f.Classes, 6), ", "))
	case f.Content == tensor.Text:
		return "  text"
	case f.Content == tensor.Image:
		return "  image files as they are"
	case f.Content == tensor.Images:
		return "  any number of image files"
	case f.Image != "":
		return "  " + f.Content + " on " + f.Image
	}
	return ""
}

// scale describes the range of an image field, if it is not 0 to 255.
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

// emptySplits names the splits that got no records, and what to do.
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

// FormatNames are the formats in words.
var FormatNames = map[string]string{Flat: "flat folder", HDF5: "HDF5 file", Zarr: "Zarr"}

// CountClasses writes a number of classes in words.
func CountClasses(n int) string {
	if n == 1 {
		return "1 class"
	}
	return units.Count(int64(n)) + " classes"
}

// PartSummary identifies the part of a dataset that a run has made.
type PartSummary struct {
	Rank      int    `json:"rank"`
	WorldSize int    `json:"world_size"`
	From      int64  `json:"from"` // its samples are [from, to) of the source
	To        int64  `json:"to"`
	Samples   int64  `json:"samples"` // of the source
	Dest      string `json:"dest"`    // where the dataset will be
}
