package write

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

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

// enter adds a record to the ids.
func (k *splitMetadata) enter(s store.Schema, r *store.Record, digests []digest.Value) {
	for i, f := range s.Fields {
		entry := k.entry[:4]
		binary.LittleEndian.PutUint32(entry, digests[i].CRC32C)
		if f.Ragged {
			entry = binary.LittleEndian.AppendUint64(entry, uint64(digest.Of(r).Rows(i, f.Spec)))
		}
		k.ids[i].Write(entry)
	}
	k.count++
}

// summarize adds a record to the statistics.
func (k *splitMetadata) summarize(s store.Schema, r *store.Record, digests []digest.Value) {
	for i, f := range s.Fields {
		if f.Ragged {
			k.lengths[i].Merge(moments.One(float64(digest.Of(r).Rows(i, f.Spec))))
		}
		for c := range k.stats[i] {
			k.stats[i][c].Merge(digests[i].Channels[c])
		}
		if isLabel(f) {
			for v := r.Values[i]; len(v) > 0; v = v[8:] {
				k.labels[i][binary.LittleEndian.Uint64(v)]++
			}
		}
	}
}

// enterBlock adds the records of a block to the ids.
func (k *splitMetadata) enterBlock(s store.Schema, b *digest.Block) {
	for i := range s.Fields {
		k.many = k.many[:0]
		for _, sum := range b.CRC32Cs(i) {
			k.many = binary.LittleEndian.AppendUint32(k.many, sum)
		}
		k.ids[i].Write(k.many)
	}
	k.count += int64(b.N)
}

// summarizeBlock adds the records of a block to the statistics.
func (k *splitMetadata) summarizeBlock(s store.Schema, b *digest.Block) {
	for i, f := range s.Fields {
		b.MergeStatistics(k.stats[i], i)
		if isLabel(f) {
			for v := b.Values[i]; len(v) > 0; v = v[8:] {
				k.labels[i][binary.LittleEndian.Uint64(v)]++
			}
		}
	}
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
