// Package summary describes what a dataset holds without reading its records, for the command
// inspect.
//
// Describe reads the metadata of a dataset, DescribeRaw of raw samples, and DescribeView of a view;
// each result has a Render for people. For an HDF5 file of another program, the Summary has the
// tree of its objects, how each is stored, what reading a record costs, and commands that make it
// fast: Origin knows conventions of programs, Conversions and Repacks build the commands.
package summary

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Summary describes a dataset, as --json prints it.
type Summary struct {
	Path        string            `json:"path"`
	Format      string            `json:"format"`   // "flat", "zarr" or "hdf5"
	Penstock    bool              `json:"penstock"` // made by penstock; otherwise only Tree, Fields and what concerns HDF5 are set
	Version     int               `json:"format_version,omitempty"`
	Generation  int               `json:"generation,omitempty"`
	Change      *store.Change     `json:"change,omitempty"` // the change that made this generation
	ID          string            `json:"id,omitempty"`
	Records     int64             `json:"records"`           // without deleted ones
	Deleted     int64             `json:"deleted,omitempty"` // records whose values are still in the files, sizes and statistics
	Bytes       int64             `json:"bytes"`             // of all records
	DiskBytes   int64             `json:"disk_bytes"`        // of all files
	Fields      []Field           `json:"fields"`
	Splits      []Split           `json:"splits,omitempty"`
	Shards      []Shard           `json:"shards,omitempty"`
	Recipe      *store.Recipe     `json:"recipe,omitempty"`
	Source      *store.SourceInfo `json:"source,omitempty"`
	Skipped     []store.Skipped   `json:"skipped,omitempty"`
	Tree        []Node            `json:"tree,omitempty"`        // of an HDF5 file that another program wrote
	HDF5        *Container        `json:"hdf5,omitempty"`        // of an HDF5 file that another program wrote
	View        bool              `json:"view,omitempty"`        // the file was written by inspect view
	Unmappable  string            `json:"unmappable,omitempty"`  // why that file as a whole cannot be used in place
	Samples     *Raw              `json:"samples,omitempty"`     // of that file: the records that the loader reads from it
	Unread      string            `json:"unread,omitempty"`      // or why it reads none, with the possible choices
	Origin      *Origin           `json:"origin,omitempty"`      // of that file: the program whose conventions it follows
	Conversions []Conversion      `json:"conversions,omitempty"` // commands that convert its parts to datasets
	Repacks     []Repack          `json:"repacks,omitempty"`     // commands that make files that penstock reads more of
}

// Container describes an HDF5 file as a whole.
type Container struct {
	Superblock int   `json:"superblock"` // its version
	UserBlock  int64 `json:"user_block"` // bytes before the superblock
	// WriteOpen says that a writer has marked the file as open: it is still writing, or it ended
	// without closing the file.
	WriteOpen bool `json:"open_for_writing"`
}

// Field is a field of a dataset.
type Field struct {
	Name   string       `json:"name"`
	DType  tensor.DType `json:"dtype"`
	Shape  tensor.Shape `json:"shape"`            // of one record or, if Ragged, of one row
	Ragged bool         `json:"ragged,omitempty"` // records have lengths of their own
	// Content is tensor.Text, tensor.Image and so on: what the bytes of records are.
	Content       string               `json:"content,omitempty"`
	Rows          int64                `json:"rows"` // of all records; as many as records unless Ragged
	Layout        string               `json:"layout,omitempty"`
	Image         string               `json:"image,omitempty"`     // the image field on which a mask, boxes or keypoints lie
	Instances     string               `json:"instances,omitempty"` // the group of fields with equal numbers of rows in a record
	Storage       string               `json:"storage"`             // NumPy's name of the stored type
	RecordBytes   int64                `json:"record_bytes"`        // of one record or, if Ragged, of one row
	Bytes         int64                `json:"bytes"`               // of all arrays of the field
	Classes       []Class              `json:"classes,omitempty"`
	Normalization *store.Normalization `json:"normalization,omitempty"`
	Statistics    *store.Statistics    `json:"statistics,omitempty"`
	// Python is an expression that opens the field or, of a ragged field, the rows of all records.
	Python  string `json:"python"`
	Offsets string `json:"python_offsets,omitempty"` // of a ragged field: where its records start in the rows
}

// Split is a named part of the records.
type Split struct {
	Name    string     `json:"name"`
	Records int64      `json:"records"`
	Ranges  [][2]int64 `json:"ranges"` // records [first, end), in order
}

// Class is a value of a label field.
type Class struct {
	Name    string `json:"name"`
	Records *int64 `json:"records,omitempty"` // nil if the manifest does not say
}

// Shard is consecutive records with files of their own.
type Shard struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"` // of its files
}

// Describe reads the metadata of the dataset at path. An HDF5 file of another program is described
// as far as possible: as fields if its datasets can be mapped or read chunk by chunk, and as a tree
// of objects in any case.
func Describe(path string) (*Summary, error) {
	p, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	d, why, err := p.LocateOrTree()
	if err != nil {
		return nil, p.WithAdvice(err)
	}
	s := &Summary{Path: path, Format: "hdf5", Fields: []Field{}, View: errors.Is(why, store.ErrView)}
	if why != nil {
		s.Unmappable = dataset.Innermost(why)
	}
	if d == nil && !s.View {
		d = p.LocatePacked()
	}
	if d != nil {
		s.Format = d.Format
	}
	if d != nil {
		s.DescribeFields(d)
	}
	if !p.ByPenstock() {
		sb := p.Meta.Superblock
		s.HDF5 = &Container{sb.Version, sb.Base, sb.WriteOpen}
		s.Tree = objectsOf(p.Meta)
		s.Origin = OriginOf(path, p.Meta)
		s.Repacks = Repacks(path, s.Tree, p.Meta)
		siblings := p.Meta.Siblings()
		if siblings == nil || len(siblings.Paths) <= mostConverted {
			s.Conversions = Conversions(path, s.Tree, p.Meta, len(s.Repacks) > 0)
		}
		if siblings != nil && s.Unmappable != "" && !s.View {
			if s.Samples, err = DescribeRaw(context.Background(), path); err != nil {
				s.Unread = dataset.Innermost(err)
			}
		}
	}
	return s, s.measure(p)
}

// mostConverted is the number of groups of the same form up to which each gets its own command.
// With more groups, one command reads them all, and Samples describes their records.
const mostConverted = 8

// DescribeFields sets the fields and, from the manifest, everything else that is known of d.
func (s *Summary) DescribeFields(d *store.Dataset) {
	s.Records, s.Bytes = d.Records, d.Bytes()
	for i, f := range d.Schema.Fields {
		rows, bytes := dataset.ExtentOf(d, i)
		s.Fields = append(s.Fields, Field{
			Name: f.Name, DType: f.DType, Shape: dataset.ShapeOf(f), Ragged: f.Ragged, Content: f.Content, Rows: rows,
			Layout: f.Layout, Image: f.Image, Instances: f.Instances, Storage: f.Storage, RecordBytes: int64(f.RecordBytes()),
			Bytes:         bytes,
			Normalization: f.Normalization, Python: dataset.Python(d, i, valuesPart(f)),
		})
		if f.Ragged {
			s.Fields[i].Offsets = dataset.Python(d, i, layout.Offsets)
		}
	}
	if m := d.Manifest; m != nil {
		s.Penstock, s.Version, s.Generation, s.Change, s.ID = true, m.Version, m.Generation, m.Change, m.ID
		s.Recipe, s.Source, s.Skipped = m.Recipe, m.Source, m.Skipped
		s.statistics(m)
		s.shards(m)
		s.splits(m)
	}
}

// splits sets the numbers of records, without deleted ones.
func (s *Summary) splits(m *store.Manifest) {
	s.Records, s.Deleted = m.Live(), m.Records-m.Live()
	splits, err := m.LiveSplits()
	if err != nil {
		return // the manifest was read with its deleted records, so this does not happen
	}
	for _, split := range splits {
		s.Splits = append(s.Splits, Split{Name: split.Name, Records: split.Records(),
			Ranges: append([][2]int64{}, split.Ranges...)})
	}
}

// statistics sets the statistics and the classes of the fields.
func (s *Summary) statistics(m *store.Manifest) {
	for i, f := range m.Fields {
		field := &s.Fields[i]
		field.Statistics = m.Statistics[f.Name]
		for k, name := range f.Classes {
			c := Class{Name: name}
			if st := field.Statistics; st != nil && len(st.Labels) == len(f.Classes) {
				c.Records = &st.Labels[k]
			}
			field.Classes = append(field.Classes, c)
		}
	}
}

// shards sets the sizes of the shards.
func (s *Summary) shards(m *store.Manifest) {
	for _, shard := range m.Shards {
		sum := Shard{First: shard.First, Count: shard.Count}
		for _, f := range shard.Files {
			sum.Bytes += f.Bytes
		}
		s.Shards = append(s.Shards, sum)
	}
}

// measure sets the bytes on disk. A flat dataset is added up from its manifest; a Zarr dataset is
// walked, because it has many more files.
func (s *Summary) measure(p *dataset.Target) error {
	switch {
	case p.Zarr:
		return filepath.WalkDir(layout.Folder(p.Path), func(_ string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil {
				s.DiskBytes += info.Size()
			}
			return err
		})
	case !p.Flat:
		s.DiskBytes = p.Meta.Size
		return nil
	}
	info, err := os.Stat(filepath.Join(layout.Folder(p.Path), layout.ManifestName))
	if err != nil {
		return fmt.Errorf("%s: %w", p.Path, err)
	}
	s.DiskBytes = info.Size()
	for _, shard := range s.Shards {
		s.DiskBytes += shard.Bytes
	}
	return nil
}

// valuesPart returns the column that has the values of a field.
func valuesPart(f store.Field) layout.Part {
	if f.Ragged {
		return layout.Values
	}
	return layout.Whole
}
