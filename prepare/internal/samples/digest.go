// Package samples decides which samples become records, and in which split: it has digests to find repeated contents,
// splits, and lists of samples that were left out. Nothing here depends on the number of workers.
//
// A [DigestSet] finds contents that came before, a [Splitter] chooses the split of a record by its content and can keep
// the shares in every class, and a [SkippedList] keeps the reasons of samples that were left out. All three are asked
// in the order of the source, and can be restored from a journal, so that a run that continues decides as the run that
// was stopped would have.
package samples

import (
	"crypto/sha256"
	"encoding/binary"
)

// Digest is the first half of the SHA-256 of a sample's content.
type Digest [16]byte

// Content returns the digest that identifies a sample. It is the digest of the images among the n values, or without
// images of all values that count. Labels and names next to an image do not count: the same image with two names is a
// duplicate.
func Content(n int, image, counts func(i int) bool, value func(i int) []byte) (d Digest) {
	images, h := false, sha256.New()
	for i := range n {
		images = images || image(i)
	}
	for i := range n {
		if image(i) || !images && counts(i) {
			var size [8]byte
			v := value(i)
			binary.LittleEndian.PutUint64(size[:], uint64(len(v)))
			h.Write(size[:])
			h.Write(v)
		}
	}
	copy(d[:], h.Sum(nil))
	return d
}
