package feed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
)

// Options is a client's request. Only BatchSize is required.
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
	Where   string         `json:"where,omitempty"`   // an expression of loader/expr
	Pack    *pack          `json:"pack,omitempty"`
	Sampler *samplerOption `json:"sampler,omitempty"` // null means the order of the dataset
	// the part of the blocks that are compared with their checksums, or verifyFirst
	Verify  float64     `json:"verify,omitempty"`
	OnError errorPolicy `json:"on_error,omitempty"`

	// pipelines by field; the pipeline of field "" is for all image fields
	Transforms map[string]json.RawMessage `json:"transforms,omitempty"`
	// boxes and so on, by field, where the dataset does not say so: see loader.Options
	Contents        map[string]string `json:"contents,omitempty"`
	BatchTransforms []batchTransform  `json:"batch_transforms,omitempty"`
	AsBytes         bool              `json:"as_bytes,omitempty"` // the client converts images to floats: see finish

	Slots int `json:"slots,omitempty"` // batches that the client may have at a time; 0 means 4, or more of small ones
	// goroutines that fill batches; 0 means as many as are found to be best
	NumWorkers int     `json:"num_workers,omitempty"`
	InOrder    *bool   `json:"in_order,omitempty"` // null means true
	Timeout    float64 `json:"timeout,omitempty"`  // seconds; 0 means none

	tails map[string]*tail // of fields whose pipelines can be divided
}

// tail is the rest of a pipeline whose head is done when records are read: by package raw, or by preprocess before.
type tail struct {
	recipe json.RawMessage
	whole  string // the ID of the pipeline
	used   bool   // the cache stores what the head makes
}

// Limits of Options.Slots. With one, the feeder could not fill the next batch while it is used.
const (
	minSlots     = 2
	defaultSlots = 4
	mostDefault  = 16
	maxSlots     = 256
)

// cachedBytes is how many bytes of batches a core's cache keeps.
const cachedBytes = 2 << 20

// verifyFirst as Options.Verify compares each block when it is first read.
const verifyFirst = -1

// maxTimeout keeps Options.Timeout far from overflow.
const maxTimeout = 1e6

// errorPolicy is a loader.OnError by its name.
type errorPolicy string

var errorPolicies = map[errorPolicy]loader.OnError{"": loader.Fail, "fail": loader.Fail, "backfill": loader.Backfill,
	"blank": loader.Blank}

// last is a loader.Last by its name.
type last string

var lasts = map[last]loader.Last{"": loader.LastEqual, "equal": loader.LastEqual, "full": loader.LastFull,
	"uneven": loader.LastUneven}

// slots returns Slots, or its default for batches of one size. The client gives half of them back at a time: the more
// there are, the less often one end wakes the other, and small batches all stay in a cache.
func (o *Options) slots(batch int64) int {
	return cmp.Or(o.Slots, int(max(defaultSlots, min(mostDefault, cachedBytes/max(1, batch)))))
}

// validate reports what package loader would not, or by other names.
func (o *Options) validate() error {
	var errs []error
	for _, check := range []struct {
		name          string
		v, least, end int
	}{
		{"batch_size", o.BatchSize, 1, 1 << 30},
		{"slots", cmp.Or(o.Slots, defaultSlots), minSlots, maxSlots},
		{"num_workers", o.NumWorkers, 0, 4096},
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

// loader returns the options of the Loader, but for what is done with the dataset's fields and
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
