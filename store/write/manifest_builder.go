package write

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// ManifestBuilder computes the statistics and the identity of a dataset while it is written. Both
// formats use it, so a dataset has the same ID in either.
//
// The ID is the first half of a SHA-256 over the fields as JSON and, for each split and
// field, the SHA-256 of the CRC32Cs (little endian) of its records in order, each followed
// by the number of rows (uint64) where the field is ragged. A split's name and a zero byte
// come before its fields; a dataset without splits counts as one that has no name. How
// records are spread over shards does not change it.
type ManifestBuilder struct {
	schema   store.Schema
	fields   []tensor.Spec // of the schema
	splits   []string
	metadata []splitMetadata // by split
}

// splitMetadata is the metadata of one split; without splits there is one.
type splitMetadata struct {
	count   int64
	ids     []hash.Hash
	stats   [][]moments.Moments // by field and channel
	lengths []moments.Moments
	labels  [][]int64
	entry   [12]byte // what goes into an id; here, so that it is not allocated
	many    []byte   // the same of a block
}

// NewManifestBuilder returns the builder of an empty dataset with those splits, if any.
func NewManifestBuilder(s store.Schema, splits ...string) *ManifestBuilder {
	l := &ManifestBuilder{schema: s, fields: s.Specs(), splits: splits}
	for range max(1, len(splits)) {
		l.metadata = append(l.metadata, newSplitMetadata(s))
	}
	return l
}

func newSplitMetadata(s store.Schema) splitMetadata {
	b := splitMetadata{lengths: make([]moments.Moments, len(s.Fields))}
	for _, f := range s.Fields {
		channels, _ := f.Channels()
		b.ids = append(b.ids, sha256.New())
		b.stats = append(b.stats, make([]moments.Moments, channels))
		b.labels = append(b.labels, make([]int64, len(f.Classes)))
	}
	return b
}

// Add enters the next record, summarizing it if that was not done, and returns the CRC32C
// of each value in sums, which is as long as the schema. A label outside its classes, or a
// split that is not one of the dataset's, is an error, and then nothing was entered.
func (l *ManifestBuilder) Add(r *store.Record, sums []uint32) error {
	digests := digest.Of(r).Take(l.fields)
	split, err := l.split(r.Split)
	if err != nil {
		return err
	}
	for i, f := range l.schema.Fields {
		if err := checkLabels(f, r.Values[i]); err != nil {
			return err
		}
	}
	l.metadata[split].add(l.schema, r, digests)
	for i := range sums {
		sums[i] = digests[i].CRC32C
	}
	return nil
}

// AddBlock enters records as as many calls of Add do, except that after an error none of them was entered.
func (l *ManifestBuilder) AddBlock(b *store.Block) error {
	if len(b.Values) != len(l.schema.Fields) {
		panic("store: block was not made by NewBlock for this schema")
	}
	digest.OfBlock(b).Settle()
	split, err := l.split(b.Split)
	if err != nil {
		return err
	}
	for i, f := range l.schema.Fields {
		if err := checkLabels(f, b.Values[i]); err != nil {
			return err
		}
	}
	l.metadata[split].addBlock(l.schema, b)
	return nil
}

// split returns the position of a split.
func (l *ManifestBuilder) split(name string) (int, error) {
	if len(l.splits) == 0 && name == "" {
		return 0, nil
	}
	if i := slices.Index(l.splits, name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("split %q is not one of the dataset's: %q", name, l.splits)
}

func (b *splitMetadata) add(s store.Schema, r *store.Record, digests []digest.Value) {
	for i, f := range s.Fields {
		entry := b.entry[:4]
		binary.LittleEndian.PutUint32(entry, digests[i].CRC32C)
		if rows := digest.Of(r).Rows(i, f.Spec); f.Ragged {
			entry = binary.LittleEndian.AppendUint64(entry, uint64(rows))
			b.lengths[i].Merge(moments.One(float64(rows)))
		}
		b.ids[i].Write(entry)
		for c := range b.stats[i] {
			b.stats[i][c].Merge(digests[i].Channels[c])
		}
		if isLabel(f) {
			for v := r.Values[i]; len(v) > 0; v = v[8:] {
				b.labels[i][binary.LittleEndian.Uint64(v)]++
			}
		}
	}
	b.count++
}

func (k *splitMetadata) addBlock(s store.Schema, b *store.Block) {
	for i, f := range s.Fields {
		k.many = k.many[:0]
		for _, sum := range digest.OfBlock(b).CRC32Cs(i) {
			k.many = binary.LittleEndian.AppendUint32(k.many, sum)
		}
		k.ids[i].Write(k.many)
		digest.OfBlock(b).MergeStatistics(k.stats[i], i)
		if isLabel(f) {
			for v := b.Values[i]; len(v) > 0; v = v[8:] {
				k.labels[i][binary.LittleEndian.Uint64(v)]++
			}
		}
	}
	k.count += int64(b.N)
}

// isLabel reports whether values are class numbers: int64 scalars, one or any number.
func isLabel(f store.Field) bool {
	return len(f.Classes) > 0 && f.DType == tensor.Int64 && len(f.Shape) == 0
}

func checkLabels(f store.Field, value []byte) error {
	if !isLabel(f) {
		return nil
	}
	for ; len(value) > 0; value = value[8:] {
		if label := int64(binary.LittleEndian.Uint64(value)); label < 0 || label >= int64(len(f.Classes)) {
			return fmt.Errorf("field %q: label %d, but there are %d classes", f.Name, label, len(f.Classes))
		}
	}
	return nil
}

// Records returns how many records were added.
func (l *ManifestBuilder) Records() int64 {
	n := int64(0)
	for i := range l.metadata {
		n += l.metadata[i].count
	}
	return n
}

// Manifest returns the manifest of what was added, with no shards.
func (l *ManifestBuilder) Manifest(info store.Info) *store.Manifest {
	m := &store.Manifest{
		Format: layout.FormatName, Version: layout.FormatVersion, Generation: 1,
		Records: l.Records(), Fields: append([]store.Field(nil), l.schema.Fields...),
		Statistics: make(map[string]*store.Statistics),
		Recipe:     info.Recipe, Source: info.Source, Skipped: info.Skipped,
	}
	for i, f := range l.schema.Fields {
		s := l.statistics(i, f, l.metadata)
		m.Statistics[f.Name] = s
		if info.NormalizeByStatistics && layout.PixelBytes(f.Spec) {
			m.Fields[i].Normalization = normalization(l.statistics(i, f, l.metadataOf(info.NormalizeSplit)))
		}
	}
	m.ID = l.id(m.Fields)
	m.BuilderState = l.State()
	return m
}

// normalization returns what brings uint8 values to mean 0 and standard deviation 1. A
// channel of one value only is not scaled.
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

// metadataOf returns the part of l.metadata for a split, or all if it is "" or not one of the splits.
func (l *ManifestBuilder) metadataOf(split string) []splitMetadata {
	if i := slices.Index(l.splits, split); i >= 0 {
		return l.metadata[i : i+1]
	}
	return l.metadata
}

// statistics sums a field up over the splits of list.
func (l *ManifestBuilder) statistics(i int, f store.Field, list []splitMetadata) *store.Statistics {
	stats, labels := make([]moments.Moments, len(l.metadata[0].stats[i])), make([]int64, len(f.Classes))
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
	if len(f.Classes) > 0 {
		s.Labels = labels
	}
	return s
}

func (l *ManifestBuilder) id(fields []store.Field) string {
	id := NewIdentity(fields)
	for i := range l.metadata {
		if len(l.splits) > 0 {
			id.Split(l.splits[i])
		}
		for _, h := range l.metadata[i].ids {
			id.Field(h.Sum(nil))
		}
	}
	return id.String()
}

// momentsOf returns the statistics of what was accumulated; of bytes if dtype is one.
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
