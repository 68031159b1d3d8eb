package write

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// splitMetadata is the identity and statistics of one split while it is written. A dataset without splits has a single
// splitMetadata.
type splitMetadata struct {
	count   int64
	ids     []hash.Hash
	stats   [][]moments.Moments // by field and channel
	lengths []moments.Moments
	labels  [][]int64
	entry   [12]byte // the bytes of one record in an id; a field, so that they are not allocated
	entries []byte   // the entries of a block; the memory is reused
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
		countLabels(k.labels[i], f, r.Values[i])
	}
}

// enterBlock adds the records of a block to the ids.
func (k *splitMetadata) enterBlock(s store.Schema, b *digest.Block) {
	for i, f := range s.Fields {
		entries := k.entries[:0]
		for n, sum := range b.CRC32Cs(i) {
			entries = binary.LittleEndian.AppendUint32(entries, sum)
			if f.Ragged {
				entries = binary.LittleEndian.AppendUint64(entries, uint64(b.Rows(i, n, n+1)))
			}
		}
		k.ids[i].Write(entries)
		k.entries = entries
	}
	k.count += int64(b.N)
}

// summarizeBlock adds the records of a block to the statistics.
func (k *splitMetadata) summarizeBlock(s store.Schema, b *digest.Block) {
	for i, f := range s.Fields {
		b.MergeStatistics(k.stats[i], i)
		if f.Ragged {
			b.MergeLengths(&k.lengths[i], i)
		}
		countLabels(k.labels[i], f, b.Values[i])
	}
}

// countLabels counts class numbers. checkLabels has refused numbers without a class.
func countLabels(counts []int64, f store.Field, values []byte) {
	if !hasLabels(f) {
		return
	}
	for size := f.DType.Size(); len(values) > 0; values = values[size:] {
		label, _ := integer(values[:size], f.DType)
		counts[label]++
	}
}

// hasLabels reports whether values are class numbers. Masks do not count: a pixel's number may stand for no class.
func hasLabels(f store.Field) bool {
	return len(f.Classes) > 0 && !f.DType.IsFloat() && len(f.Shape) == 0 && f.Content == ""
}

// checkLabels refuses labels without a class. A reader that indexes a list of class names, or a loss function on a GPU,
// would fail far from the cause.
func checkLabels(f store.Field, values []byte) error {
	if !hasLabels(f) {
		return nil
	}
	for size := f.DType.Size(); len(values) > 0; values = values[size:] {
		if label, negative := integer(values[:size], f.DType); label >= uint64(len(f.Classes)) {
			text := strconv.FormatUint(label, 10)
			if negative {
				text = strconv.FormatInt(int64(label), 10)
			}
			return fmt.Errorf("field %q: label %s, but there are %d classes", f.Name, text, len(f.Classes))
		}
	}
	return nil
}

// integer returns an integer element. A negative element is returned as two's complement.
func integer(b []byte, dtype tensor.DType) (value uint64, negative bool) {
	var wide [8]byte
	copy(wide[:], b)
	value = binary.LittleEndian.Uint64(wide[:])
	signed := dtype == tensor.Int8 || dtype == tensor.Int16 || dtype == tensor.Int32 || dtype == tensor.Int64
	if signed && b[len(b)-1] >= 0x80 {
		return value | ^uint64(0)<<(8*len(b)-1), true
	}
	return value, false
}
