package sampler

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader/internal/digest"
)

// Bucket makes batches of records that are alike in length, size, aspect or any other number, so
// that padding a batch wastes little. Every record comes once an epoch. The batches of all buckets
// come in random order, and each bucket has at most one batch that is not full. All ranks have a
// part of the same bucket's batch at a step: otherwise every rank would wait for the rank with the
// longest records. A Bucket holds 4 bytes per record, in the order of the buckets.
type Bucket struct {
	sorted []uint32 // records by bucket
	ends   []int    // by bucket: the end of its records in sorted
	sizes  []int    // by bucket: records of a batch of all ranks
	id     string
}

// BucketOptions configures a Bucket.
type BucketOptions struct {
	Batch int // records of a batch of all ranks at most, BatchSize*World.Size; must be > 0
	// Buckets is how many buckets are made, between bounds that pad least; equal numbers are in one bucket. More buckets
	// need less padding, and make the order less random.
	Buckets int
	// Bounds divide the numbers, in place of Buckets: the first bucket has the numbers below the first bound, the
	// second bucket the numbers from the first bound up to, but not including, the second.
	Bounds []float64
	// Budget is the most that the records of a batch of all ranks may cost together. Each record counts as the largest
	// number of its bucket, because all records of the batch are padded to that length. 0 means that only Batch limits the
	// records.
	Budget float64
	// Multiple divides the sizes of full batches: it is the number of ranks, or a common multiple of the numbers of
	// ranks that may resume from a State. 0 means 1.
	Multiple int
}

// maxBuckets is the most buckets of a Bucket.
const maxBuckets = 1 << 16

var _ interface {
	Identifier
	Validator
} = (*Bucket)(nil)

// NewBucket returns the Sampler for records with the given numbers, one per record.
func NewBucket(values []float64, o BucketOptions) (*Bucket, error) {
	b, err := newBucket(values, o)
	if err != nil {
		return nil, fmt.Errorf("sampler: bucket: %w", err)
	}
	return b, nil
}

func newBucket(values []float64, o BucketOptions) (*Bucket, error) {
	o.Multiple = max(1, o.Multiple)
	switch {
	case o.Batch < 1 || len(values) > math.MaxUint32:
		return nil, fmt.Errorf("%d records in batches of %d; a batch has at least 1, and there are fewer than 2^32 records",
			len(values), o.Batch)
	case (o.Buckets != 0) == (o.Bounds != nil) || o.Buckets < 0 || max(o.Buckets, len(o.Bounds)) >= maxBuckets:
		return nil, fmt.Errorf("%d buckets and %d bounds; give one of both, fewer than %d", o.Buckets, len(o.Bounds),
			maxBuckets)
	case !(o.Budget >= 0):
		return nil, fmt.Errorf("the budget is %v; it must be positive, or 0 for none", o.Budget)
	case o.Batch < o.Multiple:
		return nil, fmt.Errorf("a batch of all ranks has %d records, which is no multiple of %d", o.Batch, o.Multiple)
	}
	if i := slices.IndexFunc(values, math.IsNaN); i >= 0 {
		return nil, fmt.Errorf("record %d is NaN, which is in no bucket; filter such records", i)
	}
	bounds := o.Bounds
	if bounds == nil {
		bounds = divide(values, o.Buckets, o.Batch)
	}
	if !ascend(bounds) {
		return nil, fmt.Errorf("bounds %v must ascend", bounds)
	}
	b := &Bucket{sorted: make([]uint32, len(values)), ends: make([]int, len(bounds)+1)}
	largest := b.sort(values, bounds)
	for i, most := range largest {
		size := o.Batch
		if o.Budget > 0 && most > 0 {
			size = int(min(float64(size), math.Floor(o.Budget/most)))
		}
		if size -= size % o.Multiple; size < o.Multiple {
			return nil, fmt.Errorf("bucket %d has a record of %v, and %d of them cost more than the budget of %v; raise the "+
				"budget, or filter such records", i, most, o.Multiple, o.Budget)
		}
		b.sizes = append(b.sizes, size)
	}
	b.id = fmt.Sprintf("bucket(%s)", digest.Of(values, bounds, b.sizes))
	return b, nil
}

// ascend reports whether bounds ascend. NaN ascends nowhere.
func ascend(bounds []float64) bool {
	for i, b := range bounds {
		if math.IsNaN(b) || i > 0 && b <= bounds[i-1] {
			return false
		}
	}
	return true
}

// mostCells is into how many cells of equally many records divide puts bounds between.
const mostCells = 4096

// divide returns bounds of at most n buckets whose records, each padded to the largest of its bucket, cost least together.
// 50 buckets of equally many records would pad the longest 2 % of all sequences to the longest: a quarter of lognormal
// lengths is padding then. Bounds are between cells of equally many records, of a batch or more if there are enough.
// Equal numbers stay in one cell, so that there may be fewer buckets.
func divide(values []float64, n, batch int) (bounds []float64) {
	if len(values) == 0 {
		return nil
	}
	ascending := slices.Clone(values)
	slices.Sort(ascending)
	cells := max(n, min(mostCells, len(values)/batch))
	starts := []int{0}
	for k := 1; k < cells; k++ {
		if v := ascending[k*len(values)/cells]; v > ascending[starts[len(starts)-1]] {
			first, _ := slices.BinarySearch(ascending, v)
			starts = append(starts, first)
		}
	}
	cuts := starts[1:]
	if n < len(starts) {
		cuts = leastPadding(ascending, append(starts, len(values)), n)
	}
	for _, at := range cuts {
		bounds = append(bounds, ascending[at])
	}
	return bounds
}

// leastPadding chooses the starts of n buckets but the first among the starts of cells, after which is the end. The
// cheapest last cut never moves back as the end moves on, so that each half of the ends has half of the cuts to look at.
func leastPadding(ascending []float64, starts []int, n int) []int {
	m := len(starts)
	cost, next, from := make([]float64, m), make([]float64, m), make([][]uint16, n)
	largest := make([]float64, m) // before each start; finite, as infinite costs cannot be compared
	for j := 1; j < m; j++ {
		largest[j] = max(-1e200, min(ascending[starts[j]-1], 1e200))
		cost[j] = float64(starts[j]) * largest[j]
	}
	for k := 1; k < n; k++ {
		from[k] = make([]uint16, m)
		var fill func(first, end, least, most int)
		fill = func(first, end, least, most int) {
			if first >= end {
				return
			}
			j, best := (first+end)/2, -1
			for a := least; a <= min(most, j-1); a++ {
				if c := cost[a] + float64(starts[j]-starts[a])*largest[j]; best < 0 || c < next[j] {
					best, next[j] = a, c
				}
			}
			from[k][j] = uint16(best)
			fill(first, j, least, best)
			fill(j+1, end, best, most)
		}
		fill(k+1, m, k, m-1)
		cost, next = next, cost
	}
	cuts := make([]int, n-1)
	for k, j := n-1, m-1; k > 0; k-- {
		j = int(from[k][j])
		cuts[k-1] = starts[j]
	}
	return cuts
}

// sort puts the records in the order of their buckets by counting, and returns the largest number
// of each bucket. Counting takes two passes and keeps equal records in order.
func (b *Bucket) sort(values, bounds []float64) (largest []float64) {
	of := make([]uint16, len(values))
	largest = make([]float64, len(b.ends))
	for i, v := range values {
		k := sort.Search(len(bounds), func(k int) bool { return bounds[k] > v })
		of[i] = uint16(k)
		b.ends[k]++
		largest[k] = max(largest[k], v)
	}
	next, at := make([]int, len(b.ends)), 0
	for k, n := range b.ends {
		next[k], at = at, at+n
		b.ends[k] = at
	}
	for i, k := range of {
		b.sorted[next[k]] = uint32(i)
		next[k]++
	}
	return largest
}

// Epoch returns the order of an epoch. It needs at most 8 KiB, and 8 bytes per bucket.
func (b *Bucket) Epoch(_ int, seed uint64, epoch int) Sequence {
	return bucketSequence{b, seed, epoch, permute.Key(seed, epoch, bucketKey)}
}

// bucketKey separates the draws within buckets from other draws with the same seed.
const bucketKey = 1<<16 + 5

// ID returns a digest of the records' values, the bounds of the buckets and the sizes of batches.
func (b *Bucket) ID() string { return b.id }

// Validate refuses a Source whose number of records differs from the number of values that the
// Bucket was made with.
func (b *Bucket) Validate(n int) error {
	if len(b.sorted) != n {
		return fmt.Errorf("bucket: made for %d records; the Source has %d", len(b.sorted), n)
	}
	return nil
}

// bucketSequence has its positions in the order of the buckets, so that every batch is a stretch of
// positions. Its Batches come in random order.
type bucketSequence struct {
	*Bucket
	seed  uint64
	epoch int
	key   uint64
}

func (s bucketSequence) Len() int { return len(s.sorted) }

func (s bucketSequence) Fill(pos int, dst []int) {
	var order permute.Reused
	var x [mixLanes]int
	for len(dst) > 0 {
		k, from := s.bucket(pos)
		n := min(len(dst), len(x), s.ends[k]-pos)
		for i := range n {
			x[i] = pos + i - from
		}
		order.Prepare(uint64(s.ends[k]-from), s.key+permute.Mix64(uint64(k)))
		order.Map(x[:n])
		for i, at := range x[:n] {
			dst[i] = int(s.sorted[from+at])
		}
		pos, dst = pos+n, dst[n:]
	}
}

// bucket returns the bucket of a position, and the bucket's first position.
func (b *Bucket) bucket(pos int) (k, from int) {
	k = sort.SearchInts(b.ends, pos+1)
	return k, b.first(k)
}

func (b *Bucket) first(k int) int {
	if k == 0 {
		return 0
	}
	return b.ends[k-1]
}

// Batches returns the batches of the epoch; with whole, only the full batches.
func (s bucketSequence) Batches(whole bool) Batches {
	o := &bucketBatches{Bucket: s.Bucket, ends: make([]int, len(s.ends))}
	steps := 0
	for k, size := range s.sizes {
		n := s.ends[k] - s.first(k)
		if !whole {
			n += size - 1
		}
		steps += n / size
		o.ends[k] = steps
	}
	o.order = permute.New(steps, s.seed, s.epoch)
	return o
}

type bucketBatches struct {
	*Bucket
	ends  []int // by bucket: how many batches it and those before have
	order permute.Permutation
}

func (o *bucketBatches) Len() int { return o.order.Len() }

func (o *bucketBatches) At(step int) (pos, n int) {
	number := o.order.At(step)
	k := sort.SearchInts(o.ends, number+1)
	if k > 0 {
		number -= o.ends[k-1]
	}
	return o.Of(o.first(k) + number*o.sizes[k])
}

func (o *bucketBatches) Of(pos int) (first, n int) {
	k, from := o.bucket(pos)
	first = pos - (pos-from)%o.sizes[k]
	return first, min(o.sizes[k], o.Bucket.ends[k]-first)
}
