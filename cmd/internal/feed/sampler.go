package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
)

// samplerOption is a sampler.Sampler in JSON. Kind decides which of the other members may be set;
// they are named in the comments.
type samplerOption struct {
	Kind       string         `json:"kind"`
	Size       int            `json:"size,omitempty"`        // block
	Weights    array          `json:"weights,omitzero"`      // weighted: float64, one for each record
	Schedule   []mixWeights   `json:"schedule,omitempty"`    // mix: weights from a step on; null means the sizes
	Linear     bool           `json:"linear,omitempty"`      // mix: between the rows of Schedule
	Heat       float64        `json:"temperature,omitempty"` // mix
	PerBatch   bool           `json:"per_batch,omitempty"`   // mix
	Ends       string         `json:"ends,omitempty"`        // mix: repeat, stop or rescale
	Once       bool           `json:"once,omitempty"`        // weighted: without replacement
	NumSamples *int           `json:"num_samples,omitempty"` // weighted, balanced, mix; nil means the number of records
	Field      string         `json:"field,omitempty"`       // balanced; bucket, where "" means the only one of variable length
	Buckets    int            `json:"buckets,omitempty"`     // bucket
	Bounds     []float64      `json:"bounds,omitempty"`      // bucket: in place of buckets
	Values     *array         `json:"values,omitempty"`      // bucket: float64, one for each record, in place of the field's
	Budget     float64        `json:"budget,omitempty"`      // bucket: of one rank
	Multiple   int            `json:"multiple,omitempty"`    // bucket: of sizes of all ranks; 0 means the world size
	Count      int            `json:"count,omitempty"`       // regions
	Indices    *array         `json:"indices,omitempty"`     // subset, listed: int64
	Ranges     [][2]int       `json:"ranges,omitempty"`      // subset: [first, end)
	Seed       uint64         `json:"seed,omitempty"`        // split
	Start      float64        `json:"start,omitempty"`       // split
	Stop       float64        `json:"stop,omitempty"`        // split
	Memory     string         `json:"memory,omitempty"`      // chunk_shuffle: bytes, or like "2GiB"
	Lanes      int            `json:"lanes,omitempty"`       // chunk_shuffle
	Run        int            `json:"run,omitempty"`         // chunk_shuffle
	Ranks      int            `json:"ranks,omitempty"`       // chunk_shuffle; 0 means the world size
	Inner      *samplerOption `json:"inner,omitempty"`       // regions, subset, split
}

// draws returns the number of records in an epoch: NumSamples, or n.
func (k *samplerOption) draws(n int) int {
	if k.NumSamples == nil {
		return n
	}
	return *k.NumSamples
}

// maxInner is how deep samplers may be nested; a request is recursive, and so is its resolution.
const maxInner = 8

// sampled is the records that a sampler orders.
type sampled struct {
	src    loader.Source
	global int   // records in a batch over all ranks
	ranks  int   // number of ranks
	kept   []int // the records that filters keep; nil means all
	arrays arrays
}

// len returns the number of records.
func (s sampled) len() int {
	if s.kept != nil {
		return len(s.kept)
	}
	return s.src.Len()
}

// order returns the sampler that a request asks for; nil means the dataset's own order. A sampler
// that works on filtered records sees them numbered from 0, and Subset maps the numbers back.
func (s sampled) order(ctx context.Context, k *samplerOption) (sampler.Sampler, error) {
	o, err := s.of(ctx, k, 0)
	if err != nil {
		return nil, fmt.Errorf("sampler: %w", err)
	}
	if s.kept != nil {
		return sampler.Subset{Indices: s.kept, Inner: o}, nil
	}
	return o, nil
}

// of returns the sampler of a request, at a depth of nesting.
func (s sampled) of(ctx context.Context, k *samplerOption, depth int) (sampler.Sampler, error) {
	if k == nil {
		return nil, nil
	}
	if depth > maxInner {
		return nil, fmt.Errorf("more than %d samplers, one within the other", maxInner)
	}
	var indices []int
	if k.Indices != nil {
		var err error
		if indices, err = s.arrays.ints(*k.Indices); err != nil {
			return nil, fmt.Errorf("subset: %w", err)
		}
	}
	if k.Inner != nil {
		if !slices.Contains([]string{"regions", "subset", "split"}, k.Kind) {
			return nil, fmt.Errorf("%s has no inner sampler", k.Kind)
		}
		looks := ofSome[k.Inner.Kind]
		if looks != "" && (k.Kind == "regions" || k.Kind == "split" && k.Inner.Kind == "chunk_shuffle") {
			return nil, fmt.Errorf("%s cannot be within %s, which chooses records itself; give it alone, or within a "+
				"Subset", looks, strings.ToUpper(k.Kind[:1])+k.Kind[1:])
		}
		if k.Kind == "split" && k.Inner.looks() { // its records by their numbers, as a subset has them
			part := sampler.Split{Seed: k.Seed, From: k.Start, To: k.Stop}
			if err := part.Validate(s.len()); err != nil {
				return nil, err
			}
			order := part.Epoch(s.len(), 0, 0)
			indices = make([]int, order.Len())
			if order.Fill(0, indices); k.Inner.Kind != "subset" { // which has numbers of the part's order
				slices.Sort(indices)
			}
			k = &samplerOption{Kind: "subset", Inner: k.Inner}
		}
	}
	inner, err := s.within(k, indices).of(ctx, k.Inner, depth+1)
	if err != nil {
		return nil, err
	}
	switch k.Kind {
	case "sequential":
		return sampler.Sequential{}, nil
	case "shuffle":
		return sampler.Shuffle{}, nil
	case "block":
		if k.Size < 1 {
			return nil, fmt.Errorf("block: size is %d; it must be at least 1", k.Size)
		}
		return sampler.Block{Size: k.Size}, nil
	case "weighted":
		weights, err := s.arrays.floats(k.Weights)
		if err != nil {
			return nil, fmt.Errorf("weighted: %w", err)
		}
		if k.Once {
			return sampler.NewWeightedOnce(weights, k.draws(len(weights)))
		}
		return sampler.NewWeighted(weights, k.draws(len(weights)))
	case "balanced":
		labels, err := s.column(ctx, k.Field)
		if err != nil {
			return nil, fmt.Errorf("balanced: %w", err)
		}
		return sampler.NewWeighted(sampler.Balanced(labels), k.draws(len(labels)))
	case "mix":
		return s.mix(k)
	case "bucket":
		return s.buckets(ctx, k)
	case "chunk_shuffle":
		return s.chunks(k)
	case "regions":
		return sampler.Regions{Count: k.Count, Batch: s.global, Inner: inner}, nil
	case "subset":
		if len(k.Ranges) == 1 && k.Indices == nil && k.Ranges[0] == [2]int{0, s.len()} { // all records: the inner order
			return cmp.Or[sampler.Sampler](inner, sampler.Sequential{}), nil
		}
		return sampler.Subset{Indices: indices, Ranges: k.Ranges, Inner: inner}, nil
	case "listed":
		return listed{sampler.Subset{Indices: indices}}, nil
	case "split":
		return sampler.Split{Seed: k.Seed, From: k.Start, To: k.Stop, Inner: inner}, nil
	}
	return nil, fmt.Errorf("there is no sampler %q", k.Kind)
}

// mixWeights is an entry of a schedule in a request: a sampler.MixWeights without Drawn, because
// a client does not know how many records were drawn before the step.
type mixWeights struct {
	Step    int       `json:"step"`
	Weights []float64 `json:"weights"`
}

// mixEnds has the values of Ends by name.
var mixEnds = map[string]sampler.MixEnds{"": sampler.MixRepeat, "repeat": sampler.MixRepeat, "stop": sampler.MixStop,
	"rescale": sampler.MixRescale}

// mix returns the order that draws from several datasets. If filters or a subset left records
// out, the sizes are the numbers of the remaining records, which are found in the sorted list s.kept.
func (s sampled) mix(k *samplerOption) (sampler.Sampler, error) {
	sizes := combine.SizesOf(s.src)
	if sizes == nil {
		return nil, errors.New("mix draws from several datasets; give a list of two or more, or a concat")
	}
	if !slices.IsSorted(s.kept) {
		return nil, errors.New("mix: the numbers of its Subset do not ascend; give Subset(sorted(indices), inner=Mix(...))")
	}
	if s.kept != nil {
		end, at := 0, 0
		for i, n := range sizes {
			end += n
			next, _ := slices.BinarySearch(s.kept, end)
			sizes[i], at = next-at, next
		}
	}
	ends, ok := mixEnds[k.Ends]
	if !ok {
		return nil, fmt.Errorf("mix: ends is %q; it must be repeat, stop or rescale", k.Ends)
	}
	if k.NumSamples != nil && *k.NumSamples < 1 {
		return nil, fmt.Errorf("mix: num_samples is %d; it must be at least 1", *k.NumSamples)
	}
	o := sampler.MixOptions{Interpolate: k.Linear, Temperature: k.Heat, Batch: s.global, Draws: k.draws(0),
		PerBatch: k.PerBatch, Ends: ends}
	for _, row := range k.Schedule {
		o.Schedule = append(o.Schedule, sampler.MixWeights{Step: row.Step, Weights: row.Weights})
	}
	return sampler.NewMix(sizes, o)
}

// listed is a part of an order that the client draws itself. Where the part begins in the epoch is
// unknown here, so random transforms depend on the record alone, as if it came only once; otherwise
// they would change when a run resumes.
type listed struct{ sampler.Subset }

// Repeats reports that records count as coming once.
func (listed) Repeats() bool { return false }

// measures reports whether the order depends on the lengths of a field's records, which a cache of
// pixels changes.
func (k *samplerOption) measures(field string) bool {
	return k != nil && (k.Kind == "bucket" && k.Values == nil && (k.Field == "" || k.Field == field) || k.Inner.measures(field))
}

// chunks returns the order by chunks of windows.
func (s sampled) chunks(k *samplerOption) (sampler.Sampler, error) {
	o := sampler.ChunkOptions{Batch: s.global, Ranks: k.Ranks, Lanes: k.Lanes, Run: k.Run}
	if o.Ranks == 0 {
		o.Ranks = s.ranks
	}
	var err error
	if k.Memory != "" {
		if o.Memory, err = units.ParseBytes(k.Memory); err != nil {
			return nil, fmt.Errorf("ChunkShuffle: memory: %w", err)
		}
	}
	return loader.NewChunkShuffleOf(s.src, s.kept, o)
}

// ofSome has the samplers that look at the values or the datasets of records, with their names for users: within a subset or split
// they must see its records only.
var ofSome = map[string]string{"balanced": "ClassBalanced", "bucket": "Bucket", "chunk_shuffle": "ChunkShuffle", "mix": "Mix"}

// looks reports whether the sampler, or one within it, is of ofSome.
func (k *samplerOption) looks() bool { return k != nil && (ofSome[k.Kind] != "" || k.Inner.looks()) }

// within returns the records for the sampler inside of a subset. Numbers that do not exist are left for the subset to report.
func (s sampled) within(k *samplerOption, indices []int) sampled {
	if k.Kind != "subset" || !k.Inner.looks() {
		return s
	}
	n := s.len()
	for _, r := range k.Ranges {
		if r[0] < 0 || r[1] > n {
			return s
		}
		for i := r[0]; i < r[1]; i++ {
			indices = append(indices, i)
		}
	}
	kept := make([]int, len(indices))
	for i, record := range indices {
		if record < 0 || record >= n {
			return s
		}
		if kept[i] = record; s.kept != nil {
			kept[i] = s.kept[record]
		}
	}
	s.kept = kept
	return s
}

// column returns the values of a field, of the records that filters keep.
func (s sampled) column(ctx context.Context, field string) ([]float64, error) {
	values, err := loader.Column(ctx, s.src, field)
	if err != nil {
		return nil, err
	}
	return s.keptOf(values)
}

// keptOf returns the values of the records that filters keep.
func (s sampled) keptOf(values []float64) ([]float64, error) {
	if s.kept == nil {
		return values, nil
	}
	kept := make([]float64, len(s.kept))
	for i, record := range s.kept {
		if record >= len(values) {
			return nil, fmt.Errorf("%d values, and record %d has none", len(values), record)
		}
		kept[i] = values[record]
	}
	return kept, nil
}

// buckets returns the order by the values or lengths of a field.
func (s sampled) buckets(ctx context.Context, k *samplerOption) (sampler.Sampler, error) {
	name := k.Field
	if name == "" && k.Values == nil {
		var ragged []string
		for _, f := range s.src.Specs() {
			if f.Ragged {
				ragged = append(ragged, f.Name)
			}
		}
		if len(ragged) != 1 {
			return nil, fmt.Errorf("bucket: %d fields have records of variable length (%s); name one", len(ragged),
				strings.Join(ragged, ", "))
		}
		name = ragged[0]
	}
	var values []float64
	var err error
	if k.Values == nil {
		values, err = s.column(ctx, name)
	} else if values, err = s.arrays.floats(*k.Values); err == nil {
		values, err = s.keptOf(values)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	return sampler.NewBucket(values, sampler.BucketOptions{
		Batch: s.global, Buckets: k.Buckets, Bounds: k.Bounds, Budget: k.Budget * float64(s.ranks),
		Multiple: cmp.Or(k.Multiple, s.ranks),
	})
}
