package preprocess

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"slices"

	"github.com/penstock/penstock/internal/decode"
	"github.com/penstock/penstock/internal/source"
	"github.com/penstock/penstock/store"
)

// books remember, sample by sample in order, what went in and what was left out.
type books struct {
	samples int64
	bytes   int64
	print   hash.Hash
	skipped []store.Skipped
	kinds   map[string]int64 // of skipped samples
	scratch []byte
}

func newBooks() *books {
	return &books{print: sha256.New(), kinds: make(map[string]int64)}
}

// enter adds a sample to the fingerprint: its name, a zero byte, its size as 8 and its
// CRC32C as 4 bytes, little endian.
func (b *books) enter(s *slot) {
	b.samples++
	b.bytes += s.size
	b.scratch = append(append(b.scratch[:0], s.sample.Name...), 0)
	b.scratch = binary.LittleEndian.AppendUint64(b.scratch, uint64(s.size))
	b.scratch = binary.LittleEndian.AppendUint32(b.scratch, s.crc)
	b.print.Write(b.scratch)
}

// skip adds a sample that is left out.
func (b *books) skip(s *slot) {
	b.skipped = append(b.skipped, store.Skipped{Sample: s.sample.Name, Reason: s.bad.Error()})
	b.kinds[kindOf(s.bad)]++
}

// kindOf sorts reasons into few kinds.
func kindOf(err error) string {
	for _, kind := range []error{decode.ErrNotImage, decode.ErrCorrupt, decode.ErrUnsupported, decode.ErrTooLarge} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "unreadable file"
}

// source returns what the manifest says about where the samples came from.
func (b *books) source(info source.Info) *store.SourceInfo {
	return &store.SourceInfo{
		Kind: info.Kind, Name: info.Name, Samples: b.samples, Bytes: b.bytes,
		Fingerprint: "sha256:" + hex.EncodeToString(b.print.Sum(nil)),
	}
}

// kindNames returns the kinds of what was skipped, the most frequent first.
func (b *books) kindNames() (names []string) {
	for k := range b.kinds {
		names = append(names, k)
	}
	slices.SortFunc(names, func(x, y string) int {
		if b.kinds[x] != b.kinds[y] {
			return int(b.kinds[y] - b.kinds[x])
		}
		if x < y {
			return -1
		}
		return 1
	})
	return names
}
