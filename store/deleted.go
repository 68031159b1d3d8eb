package store

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
)

// Deleted lists the records of a dataset that a generation leaves out. Their values stay in the files, and the places
// of all records stay the same in all generations, so a delete writes a manifest and nothing else.
type Deleted struct {
	Records int64 `json:"records"` // how many

	// Bits is zlib data: one bit for each stored record, the first of which is the lowest bit of the first byte. 1 is a
	// deleted record.
	Bits []byte `json:"bits"`

	// Without names columns that were written after records had been deleted, and have no values for some of them.
	Without []string `json:"without,omitempty"`

	// Lacking has, by column, the deleted records without a value, encoded like Bits. A column of Without that is
	// missing here has no value for any deleted record.
	Lacking map[string][]byte `json:"lacking,omitempty"`
}

// NewDeleted returns the description of the deleted records among that many stored records: record i is bit i%64 of
// word i/64. It is nil if no record is deleted.
func NewDeleted(words []uint64, records int64) *Deleted {
	d := new(Deleted)
	for _, w := range words {
		d.Records += int64(bits.OnesCount64(w))
	}
	if d.Records == 0 {
		return nil
	}
	d.Bits = compressed(words, records)
	return d
}

func compressed(words []uint64, records int64) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write(packed(words, records)) // a write to memory never fails
	_ = z.Close()
	return b.Bytes()
}

// Lack records that a column has no values for some of the deleted records. words marks the records without a value,
// and deleted marks all deleted records.
func (d *Deleted) Lack(column string, words, deleted []uint64, records int64) {
	d.Without = append(d.Without, column)
	if slices.Equal(words, deleted) {
		return
	}
	if d.Lacking == nil {
		d.Lacking = make(map[string][]byte)
	}
	d.Lacking[column] = compressed(words, records)
}

// Lacks returns the deleted records for which a column has no values, as a bit set like the result of Words; nil if
// the column has values for all records. records is the number of stored records.
func (d *Deleted) Lacks(column string, records int64) ([]uint64, error) {
	if d == nil || !slices.Contains(d.Without, column) {
		return nil, nil
	}
	deleted, err := d.Words(records)
	bits, some := d.Lacking[column]
	if err != nil || !some {
		return deleted, err
	}
	words, _, err := unpacked(bits, records)
	for k := range words {
		if err == nil && words[k]&^deleted[k] != 0 {
			err = errors.New("records are marked that are not deleted")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("deleted: lacking: column %q: %w: %w", column, err, ErrCorrupt)
	}
	return words, nil
}

// packed returns the bits as bytes; the last byte may have unused bits.
func packed(words []uint64, records int64) []byte {
	out := make([]byte, 0, 8*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out[:(records+7)/8]
}

// Words returns the deleted records as a bit set: record i is bit i%64 of word i/64. records is the number of stored
// records. A nil Deleted has no deleted records.
func (d *Deleted) Words(records int64) ([]uint64, error) {
	if d == nil {
		return make([]uint64, (records+63)/64), nil
	}
	words, n, err := unpacked(d.Bits, records)
	if err == nil && n != d.Records {
		err = fmt.Errorf("%d records are marked, and it says %d", n, d.Records)
	}
	if err != nil {
		return nil, fmt.Errorf("deleted: %w: %w", err, ErrCorrupt)
	}
	return words, nil
}

// unpacked is the inverse of compressed. It also returns how many bits are 1.
func unpacked(data []byte, records int64) (words []uint64, n int64, err error) {
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, 0, err
	}
	// A small hostile manifest can claim any number of records, so memory grows with the data and not with the claim.
	var block [1 << 16]byte
	for size := (records + 7) / 8; ; {
		count, err := io.ReadFull(z, block[:])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, 0, err
		}
		if size -= int64(count); size < 0 || err != nil && size > 0 {
			return nil, 0, fmt.Errorf("it is not of %d records", records)
		}
		clear(block[count:])
		for at := 0; at < count; at += 8 {
			word := binary.LittleEndian.Uint64(block[at:])
			words, n = append(words, word), n+int64(bits.OnesCount64(word))
		}
		if err != nil {
			break
		}
	}
	if last := records % 64; last != 0 && words[len(words)-1]>>last != 0 {
		return nil, 0, errors.New("more records are marked than it has")
	}
	return words, n, nil
}

// Extended returns the description of the same deleted records after the dataset has grown from records to that many.
func (d *Deleted) Extended(records, to int64) (*Deleted, error) {
	if d == nil {
		return nil, nil
	}
	more := make([]uint64, (to+63)/64-(records+63)/64)
	words, err := d.Words(records)
	if err != nil {
		return nil, err
	}
	words = append(words, more...)
	out := NewDeleted(words, to)
	for _, column := range d.Without {
		lacks, err := d.Lacks(column, records)
		if err != nil {
			return nil, err
		}
		out.Lack(column, append(lacks, more...), words, to)
	}
	return out, nil
}

// ID returns the identity of the dataset without its deleted records. stored is the identity with them, and records is
// the number of stored records.
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

// check refuses a description that cannot belong to that many stored records, without looking at each record. Words
// looks at each, once the files are known to have as many: the number in a manifest may be a lie that costs memory.
func (d *Deleted) check(records int64) error {
	switch {
	case d == nil:
		return nil
	case d.Records < 1 || d.Records >= records:
		return fmt.Errorf("%d records of %d are deleted", d.Records, records)
	}
	return nil
}
