package feed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
)

// Options is a client's request, in JSON. Only BatchSize is required. docs/feed.md has the list.
type Options struct {
	BatchSize int    `json:"batch_size"`
	DropLast  bool   `json:"drop_last,omitempty"`
	Rank      int    `json:"rank,omitempty"`
	WorldSize int    `json:"world_size,omitempty"` // processes that train together; 0 means 1
	Last      last   `json:"last,omitempty"`       // how the last global batch is divided: equal, full or uneven
	Seed      uint64 `json:"seed,omitempty"`

	Fields  []string       `json:"fields,omitempty"` // null means all
	Split   string         `json:"split,omitempty"`
	Splits  string         `json:"splits,omitempty"`  // of raw samples: shares by name, such as train=0.8,val=0.2
	Prepare rawcache.Mode  `json:"prepare,omitempty"` // of raw samples: "" is off
	Where   string         `json:"where,omitempty"`   // an expression of package loader/expr
	Pack    *pack          `json:"pack,omitempty"`
	Sampler *samplerOption `json:"sampler,omitempty"` // null means the dataset's order
	// Verify is the share of the blocks that are compared with their checksums, or verifyFirst.
	Verify  float64     `json:"verify,omitempty"`
	OnError errorPolicy `json:"on_error,omitempty"`

	// Transforms has pipelines by field; the pipeline of the field "" is for all image fields.
	Transforms map[string]json.RawMessage `json:"transforms,omitempty"`
	// Contents says which fields are masks, boxes or keypoints, if the dataset does not: see
	// loader.Options.
	Contents        map[string]string `json:"contents,omitempty"`
	BatchTransforms []batchTransform  `json:"batch_transforms,omitempty"`
	AsBytes         bool              `json:"as_bytes,omitempty"` // the client converts images to floats itself: see finish

	Slots int `json:"slots,omitempty"` // batches that the client may hold at a time; 0 chooses 4, or more of small ones
	// NumWorkers is the number of goroutines that fill batches; 0 lets the loader find the best
	// number.
	NumWorkers int     `json:"num_workers,omitempty"`
	Memory     int64   `json:"memory,omitempty"`   // bytes that batches may take, slots and what is being filled; 0 is no limit
	InOrder    *bool   `json:"in_order,omitempty"` // null means true
	Timeout    float64 `json:"timeout,omitempty"`  // seconds; 0 means none

	// tails has, by field, the rest of a pipeline whose first part the cache of raw samples may
	// have done.
	tails map[string]*tail
}

// tail is the rest of a pipeline whose head is done when records are read: by package raw, or
// earlier by preprocess.
type tail struct {
	recipe json.RawMessage
	whole  string // the ID of the whole pipeline
	used   bool   // the cache stores the result of the head
}

// Limits and defaults of Options.Slots. With one slot, feed could not fill the next batch while the
// client uses the current one.
const (
	minSlots     = 2
	defaultSlots = 4
	mostDefault  = 16
	maxSlots     = 256
)

// cachedBytes is how many bytes of batches fit into a core's cache: small batches get as many slots
// as fit.
const cachedBytes = 2 << 20

// verifyFirst, as a value of Options.Verify, compares each block when it is first read.
const verifyFirst = -1

// maxTimeout is the largest Options.Timeout, in seconds: far from the overflow of time.Duration.
const maxTimeout = 1e6

// errorPolicy is the name of a loader.OnError.
type errorPolicy string

// errorPolicies has the policies by name.
var errorPolicies = map[errorPolicy]loader.OnError{"": loader.Fail, "fail": loader.Fail, "backfill": loader.Backfill,
	"blank": loader.Blank}

// last is the name of a loader.Last.
type last string

// lasts has the values of Last by name.
var lasts = map[last]loader.Last{"": loader.LastEqual, "equal": loader.LastEqual, "full": loader.LastFull,
	"uneven": loader.LastUneven}

// slots returns Slots, or its default for batches of that many bytes. The client gives half of its
// slots back at a time: with more slots, one process wakes the other less often, while too many
// would not stay in a cache.
func (o *Options) slots(batch int64) int {
	return cmp.Or(o.Slots, int(max(defaultSlots, min(mostDefault, cachedBytes/max(1, batch)))))
}

// validate reports values that package loader does not check, or would name by names of Go.
func (o *Options) validate() error {
	var errs []error
	for _, check := range []struct {
		name          string
		v, least, end int
	}{
		{"batch_size", o.BatchSize, 1, 1 << 30},
		{"slots", cmp.Or(o.Slots, defaultSlots), minSlots, maxSlots},
		{"num_workers", o.NumWorkers, 0, 4096},
		{"memory", int(o.Memory), 0, math.MaxInt},
		{"world_size", o.WorldSize, 0, 1 << 20},
		{"rank", o.Rank, 0, max(1, o.WorldSize) - 1},
	} {
		if check.v < check.least || check.v > check.end {
			errs = append(errs, fmt.Errorf("%s is %d; it must be from %d to %d", check.name, check.v, check.least, check.end))
		}
	}
	if _, ok := errorPolicies[o.OnError]; !ok {
		errs = append(errs, fmt.Errorf("on_error is %q; it must be fail, backfill or blank", o.OnError))
	}
	if _, ok := lasts[o.Last]; !ok {
		errs = append(errs, fmt.Errorf("last is %q; it must be equal, full or uneven", o.Last))
	}
	if o.Prepare != "" && !slices.Contains(rawcache.Modes, o.Prepare) {
		errs = append(errs, fmt.Errorf("prepare is %q; it must be auto, pixels, encoded or off", o.Prepare))
	}
	if !(o.Verify == verifyFirst || o.Verify >= 0 && o.Verify <= 1) {
		errs = append(errs, fmt.Errorf("verify is %v; it must be from 0 to 1, or %d for each block once", o.Verify,
			verifyFirst))
	}
	if !(o.Timeout >= 0 && o.Timeout <= maxTimeout) {
		errs = append(errs, fmt.Errorf("timeout is %v; it must be from 0 to %v seconds", o.Timeout, maxTimeout))
	}
	return errors.Join(errs...)
}

// verify returns which blocks are compared with their checksums.
func (o *Options) verify() mmapds.Option {
	switch o.Verify {
	case verifyFirst:
		return mmapds.WithVerify(mmapds.VerifyFirstTouch)
	case 0:
		return mmapds.WithVerify(mmapds.VerifyOff)
	case 1:
		return mmapds.WithVerify(mmapds.VerifyAlways)
	}
	return mmapds.WithVerifySample(o.Verify)
}

// loader returns the options of the Loader, without what depends on the dataset's fields and
// records.
func (o *Options) loader() loader.Options {
	return loader.Options{
		BatchSize: o.BatchSize, Seed: o.Seed, DropLast: o.DropLast,
		World:    loader.World{Rank: o.Rank, Size: o.WorldSize, Last: lasts[o.Last]},
		Prefetch: cmp.Or(o.Slots, defaultSlots), Workers: o.NumWorkers, Unordered: o.InOrder != nil && !*o.InOrder,
		Contents: o.Contents,
		OnError:  errorPolicies[o.OnError], Timeout: time.Duration(o.Timeout * float64(time.Second)),
	}
}
