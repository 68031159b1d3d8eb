package loader

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Buckets makes batches of records of similar length, so that little is padded: every record
// once an epoch, those of a batch drawn at random from one of a number of buckets, and the
// batches in random order. It holds 4 bytes a record, in the order of their lengths.
type Buckets struct {
	sorted []uint32
	batch  int
	width  int // records in a bucket; the last takes what is left
	id     string
}

// NewBuckets divides records by their lengths into so many buckets of as many records each,
// as far as that goes in whole batches. batch is the global batch, BatchSize*World.Size. More
// buckets pad less, and leave less to chance: with as many as batches, the same records are
// in a batch in every epoch.
func NewBuckets(lengths []int, batch, buckets int) (*Buckets, error) {
	if batch < 1 || buckets < 1 || len(lengths) > 1<<32-1 {
		return nil, fmt.Errorf("loader: buckets: %d records in batches of %d and %d buckets; all must be positive, and records fewer than 2^32", len(lengths), batch, buckets)
	}
	o := &Buckets{
		sorted: make([]uint32, len(lengths)), batch: batch,
		width: max(1, len(lengths)/batch/buckets) * batch,
		id:    fmt.Sprintf("buckets(%s)", digest(lengths, batch, buckets)),
	}
	for i := range o.sorted {
		o.sorted[i] = uint32(i)
	}
	slices.SortStableFunc(o.sorted, func(a, b uint32) int { return cmp.Compare(lengths[a], lengths[b]) })
	return o, nil
}

// Lengths returns how many rows each record of a field of variable length has: what
// NewBuckets wants. It reads the field's offsets and no rows.
func Lengths(ctx context.Context, src Source, field string) ([]int, error) {
	r, ok := src.(raggedSource)
	if !ok {
		return nil, fmt.Errorf("loader: lengths of %q: the Source has no fields of variable length", field)
	}
	if err := src.Retain(); err != nil {
		return nil, err
	}
	defer src.Release()
	const most = 4096
	out := make([]int, src.Len())
	indices, ends := make([]int, most), make([]int64, most+1)
	for at := 0; at < len(out); at += most {
		n := min(most, len(out)-at)
		sequential(0).Fill(at, indices[:n])
		if err := r.Lengths(ctx, field, indices[:n], ends[:n+1]); err != nil {
			return nil, fmt.Errorf("loader: lengths of %q: %w", field, err)
		}
		for i := range n {
			out[at+i] = int(ends[i+1] - ends[i])
		}
	}
	return out, nil
}

// Epoch returns the order of an epoch. It needs at most 8 KiB.
func (o *Buckets) Epoch(n int, seed uint64, epoch int) Sequence {
	return bucketSequence{o, Shuffle{}.Epoch(len(o.sorted)/o.batch, seed, epoch), epochKey(seed, epoch, bucketKey)}
}

// bucketKey is the number of the key of buckets.
const bucketKey = 1<<16 + 5

// ID returns a digest of the lengths.
func (o *Buckets) ID() string { return o.id }

// Validate reports that the lengths are not those of n records.
func (o *Buckets) Validate(n int) error {
	if len(o.sorted) != n {
		return fmt.Errorf("buckets: %d lengths for %d records", len(o.sorted), n)
	}
	return nil
}

type bucketSequence struct {
	*Buckets
	batches Sequence
	key     uint64
}

func (s bucketSequence) Len() int { return len(s.sorted) }

func (s bucketSequence) Fill(pos int, dst []int) {
	var rounds swaps
	var x [mixLanes]uint64
	for len(dst) > 0 {
		at, n := s.stretch(pos, min(len(dst), len(x)))
		from, size, key := s.bucket(at)
		n = min(n, from+size-at)
		for i := range n {
			x[i] = uint64(at + i - from)
		}
		rounds.prepare(uint64(size), key)
		rounds.permute(x[:n])
		for i, k := range x[:n] {
			dst[i] = int(s.sorted[from+int(k)])
		}
		pos, dst = pos+n, dst[n:]
	}
}

// stretch returns where a position lies in the sorted order before buckets are shuffled, and how many
// of n from there on follow each other: the batch there is any of that order. What is left over
// after whole batches comes last.
func (s bucketSequence) stretch(pos, n int) (at, of int) {
	b, in := pos/s.batch, pos%s.batch
	if b >= s.batches.Len() {
		return pos, n
	}
	return one(s.batches, b)*s.batch + in, min(n, s.batch-in)
}

// bucket returns the part of the sorted order that holds a place, and the key that shuffles it.
func (s bucketSequence) bucket(at int) (from, size int, key uint64) {
	last := max(1, len(s.sorted)/s.width) - 1
	k := min(at/s.width, last)
	from, size = k*s.width, s.width
	if k == last {
		size = len(s.sorted) - from
	}
	return from, size, s.key + mix64(uint64(k))
}
