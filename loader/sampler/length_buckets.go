package sampler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
)

// LengthBuckets groups records of similar length into batches, so that little is padded: every record
// once an epoch, those of a batch drawn at random from one of a number of buckets, and the
// batches in random order. It holds 4 bytes a record, in the order of their lengths.
type LengthBuckets struct {
	sorted []uint32
	batch  int
	width  int // records in a bucket; the last takes what is left
	id     string
}

var _ interface {
	Identifier
	Validator
} = (*LengthBuckets)(nil)

// NewLengthBuckets divides records by their lengths into buckets of equally many records, in
// whole batches where it can. batch is the global batch, BatchSize*World.Size. More buckets pad
// less, and are less random: with one bucket per batch, a batch has the same records in every
// epoch.
func NewLengthBuckets(lengths []int, batch, buckets int) (*LengthBuckets, error) {
	if batch < 1 || buckets < 1 || len(lengths) > 1<<32-1 {
		return nil, fmt.Errorf("sampler: length buckets: %d records in batches of %d and %d buckets; all must be positive, "+
			"and records fewer than 2^32", len(lengths), batch, buckets)
	}
	o := &LengthBuckets{
		sorted: make([]uint32, len(lengths)), batch: batch,
		width: max(1, len(lengths)/batch/buckets) * batch,
		id:    fmt.Sprintf("length-buckets(%s)", digest.Of(lengths, batch, buckets)),
	}
	for i := range o.sorted {
		o.sorted[i] = uint32(i)
	}
	slices.SortStableFunc(o.sorted, func(a, b uint32) int { return cmp.Compare(lengths[a], lengths[b]) })
	return o, nil
}

// Epoch returns the order of an epoch. It needs at most 8 KiB.
func (o *LengthBuckets) Epoch(n int, seed uint64, epoch int) Sequence {
	return bucketSequence{o, permute.New(len(o.sorted)/o.batch, seed, epoch), permute.Key(seed, epoch, bucketKey)}
}

// bucketKey is the number of the key of buckets.
const bucketKey = 1<<16 + 5

// ID returns a digest of the lengths.
func (o *LengthBuckets) ID() string { return o.id }

// Validate reports that the lengths are not those of n records.
func (o *LengthBuckets) Validate(n int) error {
	if len(o.sorted) != n {
		return fmt.Errorf("LengthBuckets: %d lengths for %d records", len(o.sorted), n)
	}
	return nil
}

type bucketSequence struct {
	*LengthBuckets
	batches permute.Permutation
	key     uint64
}

func (s bucketSequence) Len() int { return len(s.sorted) }

func (s bucketSequence) Fill(pos int, dst []int) {
	var rounds permute.Swaps
	var x [mixLanes]uint64
	for len(dst) > 0 {
		at, n := s.stretch(pos, min(len(dst), len(x)))
		from, size, key := s.bucket(at)
		n = min(n, from+size-at)
		for i := range n {
			x[i] = uint64(at + i - from)
		}
		rounds.Prepare(uint64(size), key)
		rounds.Permute(x[:n])
		for i, k := range x[:n] {
			dst[i] = int(s.sorted[from+int(k)])
		}
		pos, dst = pos+n, dst[n:]
	}
}

// stretch returns where a position is in the sorted order before buckets are shuffled, and how many
// of n from there on follow each other: the batch there is any of that order. Records that
// remain after whole batches come last.
func (s bucketSequence) stretch(pos, n int) (at, of int) {
	b, in := pos/s.batch, pos%s.batch
	if b >= s.batches.Len() {
		return pos, n
	}
	return s.batches.At(b)*s.batch + in, min(n, s.batch-in)
}

// bucket returns the part of the sorted order that holds a place, and the key that shuffles it.
func (s bucketSequence) bucket(at int) (from, size int, key uint64) {
	last := max(1, len(s.sorted)/s.width) - 1
	k := min(at/s.width, last)
	from, size = k*s.width, s.width
	if k == last {
		size = len(s.sorted) - from
	}
	return from, size, s.key + permute.Mix64(uint64(k))
}
