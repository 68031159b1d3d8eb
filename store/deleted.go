package store

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"
	"slices"
)

// Deleted says which records of a dataset a generation leaves out. Their values stay in the files, and their
// places there are the same in all generations.
type Deleted struct {
	Records int64 `json:"records"` // how many

	// Bits is zlib data: one bit for each stored record, the first of which is the lowest bit of the first byte. 1 is a
	// deleted record.
	Bits []byte `json:"bits"`

	// Without names columns that were written after records had been deleted, and have no values for them.
	Without []string `json:"without,omitempty"`
}

// NewDeleted returns what a manifest of that many stored records says of some that are deleted: record i is bit i%64 of
// word i/64. It is nil if none is.
func NewDeleted(words []uint64, records int64) *Deleted {
	d := new(Deleted)
	for _, w := range words {
		d.Records += int64(bits.OnesCount64(w))
	}
	if d.Records == 0 {
		return nil
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write(packed(words, records)) // to memory, which never fails
	_ = z.Close()
	d.Bits = b.Bytes()
	return d
}

// packed returns the bits as bytes.
func packed(words []uint64, records int64) []byte {
	out := make([]byte, 0, 8*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out[:(records+7)/8]
}

// Words returns the deleted ones of that many stored records: record i is bit i%64 of word i/64. nil has none.
func (d *Deleted) Words(records int64) ([]uint64, error) {
	words := make([]uint64, (records+63)/64)
	if d == nil {
		return words, nil
	}
	z, err := zlib.NewReader(bytes.NewReader(d.Bits))
	if err != nil {
		return nil, fmt.Errorf("deleted: %w: %w", err, ErrCorrupt)
	}
	data, err := io.ReadAll(io.LimitReader(z, (records+7)/8+1))
	if err == nil && int64(len(data)) != (records+7)/8 {
		err = fmt.Errorf("%d bytes for %d records", len(data), records)
	}
	if err != nil {
		return nil, fmt.Errorf("deleted: %w: %w", err, ErrCorrupt)
	}
	n := int64(0)
	for k := range words {
		var b [8]byte
		copy(b[:], data[8*k:])
		words[k] = binary.LittleEndian.Uint64(b[:])
		n += int64(bits.OnesCount64(words[k]))
	}
	if last := records % 64; last != 0 && words[len(words)-1]>>last != 0 || n != d.Records {
		return nil, fmt.Errorf("deleted: %d records are marked, and it says %d: %w", n, d.Records, ErrCorrupt)
	}
	return words, nil
}

// Extended returns what d is of a dataset that records were added to.
func (d *Deleted) Extended(records, to int64) (*Deleted, error) {
	if d == nil {
		return nil, nil
	}
	words, err := d.Words(records)
	if err != nil {
		return nil, err
	}
	out := NewDeleted(append(words, make([]uint64, (to+63)/64-int64(len(words)))...), to)
	out.Without = slices.Clone(d.Without)
	return out, nil
}

// ID returns the id of a dataset of that many stored records, which have the id stored, without those that are deleted.
func (d *Deleted) ID(stored string, records int64) (string, error) {
	if d == nil {
		return stored, nil
	}
	words, err := d.Words(records)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "deleted\n%s\n", stored)
	h.Write(packed(words, records))
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// check reports what cannot be of a manifest of that many stored records.
func (d *Deleted) check(records int64) error {
	switch {
	case d == nil:
		return nil
	case d.Records < 1 || d.Records >= records:
		return fmt.Errorf("%d records of %d are deleted", d.Records, records)
	}
	_, err := d.Words(records)
	return err
}
