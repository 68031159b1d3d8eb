package summary

import (
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/hdf5/chunk"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/prepare/source/hdf5"
	"github.com/penstock/penstock/tensor"
)

// adviceBatch is the number of records in a batch whose reading cost the summary prints.
const adviceBatch = 32

// Storage says how a dataset of an HDF5 file is stored, and what reading it costs. Fill value and
// times are terms of HDF5: see "Fill Value" and H5Pset_alloc_time in its manual.
type Storage struct {
	Header   int64      `json:"header"` // offset of the object header
	Links    int        `json:"links"`  // hard links to it
	Stored   int64      `json:"stored"` // bytes of the elements in the file
	Ratio    float64    `json:"ratio,omitempty"`
	Fill     any        `json:"fill"`            // value of what was never written; null if undefined, or not read
	FillFrom string     `json:"fill_from"`       // "default", which is zero bytes, "user" or "undefined"
	FillTime string     `json:"fill_time"`       // when the fill value is written: "alloc", "never" or "ifset"; "" if unknown
	Alloc    string     `json:"allocation_time"` // when space is allocated: "early", "late" or "incremental"; "" if unknown
	Chunks   *Chunks    `json:"chunks,omitempty"`
	External []External `json:"external,omitempty"`
	Sources  []Source   `json:"sources,omitempty"` // of a virtual dataset
	Unread   string     `json:"unread,omitempty"`  // why the elements are not read as they are
	Fields   []string   `json:"fields,omitempty"`  // the fields to which preprocess converts it nevertheless
	Reading  *Reading   `json:"reading,omitempty"` // nil if penstock does not read it
}

// Chunks describes the chunks of a dataset.
type Chunks struct {
	Index    string `json:"index"`
	IndexAt  int64  `json:"index_offset"` // -1 if there is none
	Bytes    int64  `json:"bytes"`        // bytes of a chunk before its filters
	Stored   int64  `json:"stored"`       // number of chunks in the file
	Places   int64  `json:"places"`       // number of chunks that the shape has
	Smallest int64  `json:"smallest"`     // bytes as stored
	Largest  int64  `json:"largest"`
	Records  int64  `json:"records"`  // records of which a chunk has a part
	ARecord  int64  `json:"a_record"` // chunks that have a part of one record
}

// External is a piece of a dataset that is in another file.
type External struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"` // -1 if unlimited
}

// Source is a dataset whose elements a virtual dataset shows.
type Source struct {
	File string `json:"file"` // "." for the same file
	Path string `json:"path"`
}

// Reading is the cost of reading single records. Nanoseconds are estimates for one core of a
// server, with the file in memory.
type Reading struct {
	RecordBytes      int64    `json:"record_bytes"`
	PerRecord        float64  `json:"amplification"`       // bytes to read for one record, over the record's own bytes
	PerBatch         float64  `json:"batch_amplification"` // the same for a batch of Batch random records
	Batch            int      `json:"batch"`
	Nanos            float64  `json:"record_ns"`           // to read one random record
	ConvertedNanos   float64  `json:"converted_record_ns"` // the same if records were contiguous
	Gain             float64  `json:"gain"`
	Problems         []string `json:"problems,omitempty"`
	cannotBeUsed     bool     // records cannot be mapped
	convertedRecords int64
}

// fillStates has the names of fill states in JSON.
var fillStates = map[meta.FillState]string{meta.FillDefault: "default", meta.FillUser: "user",
	meta.FillUndefined: "undefined"}

// storageOf describes a dataset. links is the number of hard links to it. A dataset whose cost
// cannot be estimated has no Reading.
func storageOf(d *meta.Dataset, links int) *Storage {
	s := &Storage{Header: d.HeaderAt, Links: links, FillFrom: fillStates[d.Fill.State], FillTime: d.Fill.Write,
		Alloc: d.Fill.Alloc}
	if fill, ok := d.FillValue(); ok {
		s.Fill = asJSON(fill)
	}
	for _, e := range d.External {
		s.External = append(s.External, External{e.Name, e.Offset, e.Size})
	}
	sources, _ := d.Sources() // a list that cannot be read leaves the sources unknown
	for _, v := range sources {
		s.Sources = append(s.Sources, Source(v))
	}
	if d.Layout.Kind != meta.Chunked && d.Layout.Offset >= 0 {
		s.Stored = d.Layout.Size
	}
	s.Fields = fieldTexts(d)
	a, err := chunk.Advise(d, adviceBatch)
	s.lies(d, &a)
	if err != nil {
		s.Unread = dataset.UnreadText(err)
		return s
	}
	s.advised(d, &a)
	return s
}

// fieldTexts describes the fields to which preprocess converts a dataset that cannot be read in
// place, because of its type or because its elements are in other files.
func fieldTexts(d *meta.Dataset) (list []string) {
	if _, err := d.Spec(); err == nil && len(d.External) == 0 && d.Layout.Kind != meta.Virtual {
		return nil
	}
	fields, err := hdf5.Fields(d)
	if err != nil {
		return nil
	}
	name := strings.Trim(d.Path, "/")
	for _, f := range fields {
		kind := f.DType.String()
		switch {
		case f.Content == tensor.Text:
			kind = "text"
		case f.Classes != nil:
			kind = "label"
		case f.Ragged:
			kind += " of variable length"
		}
		if member := strings.TrimPrefix(f.Origin, name); member != "" {
			kind = member[1:] + " " + kind
		}
		list = append(list, kind)
	}
	return list
}

// lies sets where the elements are.
func (s *Storage) lies(d *meta.Dataset, a *chunk.Advice) {
	if a.Stored > 0 {
		s.Stored, s.Ratio = a.Stored, a.Ratio
	}
	if d.Layout.Kind == meta.Chunked && a.ChunkBytes > 0 {
		s.Chunks = &Chunks{
			Index: d.Layout.Index.String(), IndexAt: d.Layout.IndexAt, Bytes: a.ChunkBytes, Stored: a.Chunks, Places: a.Places,
			Smallest: a.Smallest, Largest: a.Largest, Records: a.ChunkRecords, ARecord: a.PerRecord,
		}
	}
}

// advised adds the advice about the cost of reading.
func (s *Storage) advised(d *meta.Dataset, a *chunk.Advice) {
	if len(d.Dims) == 0 || a.Records == 0 || a.RecordBytes == 0 {
		return
	}
	s.Reading = &Reading{
		RecordBytes: a.RecordBytes, PerRecord: a.Amplification, PerBatch: a.BatchAmplification, Batch: a.Batch,
		Nanos: a.Nanos, ConvertedNanos: a.ConvertedNanos, Gain: a.Gain(), Problems: a.Problems,
		cannotBeUsed: d.Mappable() != nil || !d.Aligned(), convertedRecords: a.Records,
	}
}

// base returns the last part of an object's path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
