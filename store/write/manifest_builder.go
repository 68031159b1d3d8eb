package write

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ManifestBuilder computes the statistics and the identity of a dataset while it is written. The writers of all formats
// use it, so equal records have the same ID in each.
//
// The ID is the first half of a SHA-256 over the fields as JSON and, for each split and field, the SHA-256 of the
// CRC32Cs (little endian) of its records in order, each followed by the number of rows (uint64) where the field is
// ragged. A split's name and a zero byte come before its fields; a dataset without splits counts as one split without a
// name. How records are spread over shards does not change the ID.
type ManifestBuilder struct {
	schema   store.Schema
	fields   []tensor.Spec // of the schema
	splits   []string
	metadata []splitMetadata // by split
	noValues bool            // the next records are deleted ones without values: not in statistics
}

// NewManifestBuilder returns the builder of an empty dataset with those splits, if any.
func NewManifestBuilder(s store.Schema, splits ...string) *ManifestBuilder {
	l := &ManifestBuilder{schema: s, fields: s.Specs(), splits: splits}
	for range max(1, len(splits)) {
		l.metadata = append(l.metadata, newSplitMetadata(s))
	}
	return l
}

// Add enters the next record, summarizing it if that was not done, and returns the CRC32C of each value in sums, which
// is as long as the schema. A label outside its classes, or a split that is not one of the dataset's, is an error. All
// checks come first, so that after an error nothing was entered: hashes cannot be undone.
func (mb *ManifestBuilder) Add(r *store.Record, sums []uint32) error {
	digests := digest.Of(r).Take(mb.fields)
	split, err := mb.split(r.Split)
	if err != nil {
		return err
	}
	for i, f := range mb.schema.Fields {
		if err := checkLabels(f, r.Values[i]); err != nil {
			return err
		}
	}
	if err := mb.checkInstances(r); err != nil {
		return err
	}
	mb.metadata[split].enter(mb.schema, r, digests)
	if !mb.noValues {
		mb.metadata[split].summarize(mb.schema, r, digests)
	}
	for i := range sums {
		sums[i] = digests[i].CRC32C
	}
	return nil
}

// checkInstances refuses a record in which fields of the same instances, such as boxes and their labels, have different
// numbers of rows.
func (mb *ManifestBuilder) checkInstances(r *store.Record) error {
	d := digest.Of(r)
	return mb.schema.CheckInstances(func(i int) int { return d.Rows(i, mb.fields[i]) })
}

// AddBlock enters the records of a block, as many calls of Add would, except that after an error no record of the
// block was entered.
func (mb *ManifestBuilder) AddBlock(b *digest.Block) error {
	if len(b.Values) != len(mb.schema.Fields) {
		panic("store: block was not made by NewBlock for this schema")
	}
	b.Settle()
	split, err := mb.split(b.Split)
	if err != nil {
		return err
	}
	for i, f := range mb.schema.Fields {
		if err := checkLabels(f, b.Values[i]); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(mb.fields, func(f tensor.Spec) bool { return f.Instances != "" }) {
		for n := range b.N {
			if err := mb.schema.CheckInstances(func(i int) int { return b.Rows(i, n, n+1) }); err != nil {
				return err
			}
		}
	}
	mb.metadata[split].enterBlock(mb.schema, b)
	if !mb.noValues {
		mb.metadata[split].summarizeBlock(mb.schema, b)
	}
	return nil
}

// split returns the position of a split.
func (mb *ManifestBuilder) split(name string) (int, error) {
	if len(mb.splits) == 0 && name == "" {
		return 0, nil
	}
	if i := slices.Index(mb.splits, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("split %q is not one of the dataset's: %q", name, mb.splits)
}

// Records returns how many records were added.
func (mb *ManifestBuilder) Records() int64 {
	n := int64(0)
	for i := range mb.metadata {
		n += mb.metadata[i].count
	}
	return n
}

// Manifest returns the manifest of the added records, with no shards.
func (mb *ManifestBuilder) Manifest(info store.Info) *store.Manifest {
	m := &store.Manifest{
		Format: layout.FormatName, Version: layout.VersionOf(mb.fields), Generation: 1,
		Records: mb.Records(), Fields: append([]store.Field(nil), mb.schema.Fields...),
		Statistics: make(map[string]*store.Statistics),
		Recipe:     info.Recipe, Source: info.Source, Skipped: info.Skipped,
	}
	for i, f := range mb.schema.Fields {
		s := mb.statistics(i, f, mb.metadata)
		m.Statistics[f.Name] = s
		if info.NormalizeByStatistics && layout.PixelBytes(f.Spec) {
			m.Fields[i].Normalization = normalization(mb.statistics(i, f, mb.metadataOf(info.NormalizeSplit)))
		}
	}
	m.ID = mb.id(m.Fields)
	m.BuilderState = mb.State()
	return m
}

// normalization returns the scale and offset that bring uint8 values to mean 0 and standard deviation 1. A channel in
// which all values are equal is not scaled: its deviation is 0, and dividing by 0 would give NaN.
func normalization(s *store.Statistics) *store.Normalization {
	channels := s.Channels
	if channels == nil {
		channels = []store.Moments{s.Moments}
	}
	n := &store.Normalization{Scale: 255}
	for _, c := range channels {
		std := c.Std / 255
		if std == 0 {
			std = 1
		}
		n.Mean, n.Std = append(n.Mean, c.Mean/255), append(n.Std, std)
	}
	return n
}

// metadataOf returns the metadata of a split, or of all splits if split is "" or unknown.
func (mb *ManifestBuilder) metadataOf(split string) []splitMetadata {
	if i := slices.Index(mb.splits, split); i >= 0 {
		return mb.metadata[i : i+1]
	}
	return mb.metadata
}

// statistics returns the statistics of field i, added up over the splits of list.
func (mb *ManifestBuilder) statistics(i int, f store.Field, list []splitMetadata) *store.Statistics {
	stats, labels := make([]moments.Moments, len(mb.metadata[0].stats[i])), make([]int64, len(f.Classes))
	var all, lengths moments.Moments
	for _, b := range list {
		for c := range stats {
			stats[c].Merge(b.stats[i][c])
		}
		lengths.Merge(b.lengths[i])
		for class, n := range b.labels[i] {
			labels[class] += n
		}
	}
	s := new(store.Statistics)
	for _, c := range stats {
		all.Merge(c)
		if len(stats) > 1 {
			s.Channels = append(s.Channels, momentsOf(c, f.DType))
		}
	}
	s.Moments = momentsOf(all, f.DType)
	if f.Ragged {
		m := momentsOf(lengths, tensor.Float64)
		s.Lengths = &m
	}
	if hasLabels(f) && sumOf(labels) == all.N { // older builds, which an append may continue, counted only int64 labels
		s.Labels = labels
	}
	return s
}

func sumOf(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// id returns the identity of the dataset: a digest of the digests of fields and splits in their order. Shards do not
// count, so datasets of equal records have equal ids however they were cut.
func (mb *ManifestBuilder) id(fields []store.Field) string {
	id := NewIdentity(fields)
	for i := range mb.metadata {
		if len(mb.splits) > 0 {
			id.Split(mb.splits[i])
		}
		for _, h := range mb.metadata[i].ids {
			id.Field(h.Sum(nil))
		}
	}
	return id.String()
}

// momentsOf returns the accumulated statistics. Those of bytes come from exact sums of integers.
func momentsOf(a moments.Moments, dtype tensor.DType) store.Moments {
	m := store.Moments{Min: a.Min, Max: a.Max, NonFinite: a.NonFinite}
	if isByte(dtype) {
		m.Mean, m.Std = a.OfBytes()
	} else {
		m.Mean, m.Std = a.Mean, a.Std()
	}
	return m
}

func isByte(d tensor.DType) bool { return d == tensor.Uint8 || d == tensor.Bool }

// AddStorage enters into a manifest how an array is compressed.
func AddStorage(m *store.Manifest, array string, s *store.Storage) {
	if m.Storage == nil {
		m.Storage = make(map[string]*store.Storage)
	}
	m.Storage[array] = s
}

// State returns all that Restore needs to continue, in the form that
// docs/format.md describes.
func (mb *ManifestBuilder) State() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(mb.metadata)))
	for i := range mb.metadata {
		b = mb.metadata[i].state(b)
	}
	return b
}

// Restore takes over the metadata that State returned, for the same fields, with as many splits and classes or, at the
// end of their lists, fewer. After an error, which is ErrCorrupt, the ManifestBuilder is not usable.
func (mb *ManifestBuilder) Restore(state []byte) error {
	r := stateReader{b: state}
	n := int(r.uint32())
	if n < 1 || n > len(mb.metadata) {
		return errBadState
	}
	for i := range n {
		if err := mb.metadata[i].restore(&r); err != nil {
			return err
		}
	}
	if r.bad || len(r.b) > 0 {
		return errBadState
	}
	return nil
}
