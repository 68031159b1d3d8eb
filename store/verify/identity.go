package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"reflect"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// identity computes the id of a dataset from the checksums of its records, which have to come in order. Methods may be
// called on nil.
type identity struct {
	manifest *store.Manifest
	digests  [][]hash.Hash // by split and field
	splits   write.SplitRanges
	failed   bool
	entry    [12]byte // scratch
	next     []int64  // by field: the record that comes next
	open     []piece  // by field: the part of that record that jobs have had so far
}

// piece is a part of a record in one job: its CRC32C and length, and whether the record ends with it. A record of a
// ragged field may span several jobs.
type piece struct {
	crc  uint32
	ends bool
	n    int64 // bytes
}

// newIdentity returns nil if d is not a complete dataset that penstock wrote: the id covers all records and fields.
func newIdentity(d *store.Dataset) *identity {
	m := d.Manifest
	if m == nil || m.Records != d.Records || !reflect.DeepEqual(d.Schema.Fields, m.Fields) {
		return nil
	}
	id := &identity{manifest: m, next: make([]int64, len(m.Fields)), open: make([]piece, len(m.Fields)),
		splits: write.SplitRangesOf(m.Splits, m.Records)}
	for range max(1, len(m.Splits)) {
		var list []hash.Hash
		for range m.Fields {
			list = append(list, sha256.New())
		}
		id.digests = append(id.digests, list)
	}
	return id
}

func (id *identity) fail() {
	if id != nil {
		id.failed = true
	}
}

// add enters the records of a job, and joins pieces of records that span jobs.
func (id *identity) add(j *job) {
	if id == nil || id.failed || j.column.Part == layout.Offsets {
		return
	}
	f := j.column.Field
	id.records(f, j.crcs, 4)
	for _, p := range j.digest {
		open := &id.open[f]
		if open.n > 0 {
			p.crc = write.CombineCRC32C(open.crc, p.crc, p.n)
		}
		open.crc, open.n = p.crc, open.n+p.n
		if p.ends {
			binary.LittleEndian.PutUint32(id.entry[:], open.crc)
			binary.LittleEndian.PutUint64(id.entry[4:], uint64(open.n/int64(j.column.Spec.RecordBytes())))
			id.records(f, id.entry[:], 12)
			*open = piece{}
		}
	}
	j.crcs, j.digest, j.ends = nil, nil, nil
}

// records enters the next records of a field in the digests of their splits. entries has size bytes for each record.
func (id *identity) records(f int, entries []byte, size int64) {
	for len(entries) > 0 && !id.failed {
		part := id.splits.Of(id.next[f])
		if part == len(id.splits) {
			id.failed = true
			return
		}
		n := min(id.splits[part].End-id.next[f], int64(len(entries))/size)
		id.digests[id.splits[part].Split][f].Write(entries[:n*size])
		id.next[f] += n
		entries = entries[n*size:]
	}
}

// String returns the id.
func (id *identity) String() string {
	out := write.NewIdentity(id.manifest.Fields)
	for i, list := range id.digests {
		if len(id.manifest.Splits) > 0 {
			out.Split(id.manifest.Splits[i].Name)
		}
		for _, h := range list {
			out.Field(h.Sum(nil))
		}
	}
	return out.String()
}

// checkIdentity compares the id of the records with the manifest's id. It finds blocks that were exchanged together
// with their checksums.
func (v *verifier) checkIdentity() {
	id := v.identity
	if id == nil || id.failed {
		return
	}
	v.result.Identity = true
	got, err := id.manifest.Deleted.ID(id.String(), id.manifest.Records)
	if err == nil && got == id.manifest.ID {
		return
	}
	v.result.Corruptions++
	if v.opts.Corrupt != nil {
		v.opts.Corrupt(&store.CorruptionError{Path: v.data.Path, Last: v.data.Records - 1,
			Err: fmt.Errorf("its records have the id %s, but its manifest says %s: they do not belong together: %w", got,
				id.manifest.ID, store.ErrCorrupt)})
	}
}

// digestRecords computes the checksums of the records in the payload, or of their parts.
func (j *job) digestRecords(payload []byte) {
	size := int64(j.column.Spec.RecordBytes())
	switch j.column.Part {
	case layout.Offsets:
		return
	case layout.Whole:
		j.crcs = make([]byte, 0, 4*int64(len(payload))/size)
		for ; len(payload) > 0; payload = payload[size:] {
			j.crcs = binary.LittleEndian.AppendUint32(j.crcs, layout.CRC32C(payload[:size]))
		}
		return
	}
	at, to := j.rows()
	for _, end := range j.ends {
		n := (end - at) * size
		j.digest = append(j.digest, piece{layout.CRC32C(payload[:n]), true, n})
		payload, at = payload[n:], end
	}
	if at < to {
		j.digest = append(j.digest, piece{layout.CRC32C(payload), false, int64(len(payload))})
	}
}
