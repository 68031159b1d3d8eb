package preprocess

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Config is everything that one run depends on. DefaultConfig gives the defaults, Source
// and Dest aside.
type Config struct {
	Source  string // folder, file, or glob of files with the samples
	Dest    string // dataset to make
	From    string // kind of source, one of source.Kinds, or "auto"
	Fields  string // which columns become which fields, see source.ParseFields; "" for all
	Outside bool   // files that tables and links name may lie outside of the source's folder
	Format  string // "flat", "hdf5", or "" to tell from Dest's name

	Resize []int  // one length, or height and width; nil leaves sizes as they are
	Fit    string // shorter, longer, exact, cover, pad; "" is shorter for one length, exact for two
	Crop   []int  // centre crop: one length for a square, or height and width; nil for none
	Filter string // nearest, box, bilinear, hamming, bicubic, lanczos

	// Of these the zero value is rgb, CHW, uint8 and none for files of images, and leaves
	// arrays of pixels as they are.
	Color     string // "rgb" or "gray"
	Layout    string // store.CHW or store.HWC
	DType     tensor.DType
	Normalize Normalize

	// NormalizeSplit is the split that the dataset's own mean and deviation come from, or "all";
	// "" is the split of training where there are splits, see [trainingSplit].
	NormalizeSplit string

	Rules
	KeepEncoded bool // keep files of images, as a field of variable length: Resize makes smaller only those that are large
	Quality     int  // of JPEGs that are made then, 1 to 100; 0 is 90
	LargerThan  int  // pixels of the side that Fit names; smaller files are kept as they are; 0 is what Resize makes

	Workers    int   // goroutines that decode, each one image at a time
	ShardBytes int64 // of a flat dataset's largest field, as store.FlatOptions; 0 is its default
	Compress   Compress
	Skip       bool  // leave unreadable samples out instead of failing
	MaxErrors  Limit // with Skip: more bad samples than that are a failure
	Overwrite  bool
	MaxPixels  int   // larger images are refused from their header
	Memory     int64 // bytes of records under way, at least two a worker; 0 means 64 MiB

	Split    []Share // nil: no splits, or those that the source has
	Stratify bool    // give every class its shares
	Shuffle  Seed
	Dedup    bool // leave out samples whose content was there before
	Append   bool // add to the dataset that is there
	Resume   bool // continue a run that was stopped, if there is one
	View     bool // write an HDF5 file over the .npy files, too

	// Spool is a folder where a dataset is built that goes to a bucket; "" is the system's for
	// temporary files. It needs room for an HDF5 file, and for a dataset that replaces another
	// one; of other ones for some shards, as each is sent when it is finished.
	Spool string

	// World says which part of the samples this run makes; the zero value is all of them.
	World World

	// Checkpoint is how often a run that can be resumed makes sure of what it has; 0 means
	// every 10 seconds.
	Checkpoint time.Duration

	// Transforms is a recipe that replaces Resize, Fit, Crop, Filter, Layout and DType, see
	// package transforms; an entry may name its "field". nil: there is none.
	Transforms json.RawMessage

	inherits bool // options and transforms are those of the dataset that is appended to

	partsAt string  // where parts may be already, beside the folder that they are made in
	outbox  *outbox // of a dataset that goes to a bucket; nil: nothing of it goes there while it is built

	// standardize has the arrays that get mean and deviation of the dataset, once these are
	// known.
	standardize map[string]transforms.Standardize
}

// Formats of a dataset.
const (
	formatFlat = "flat"
	formatHDF5 = "hdf5"
)

// Seed asks for a random order.
type Seed struct {
	Set  bool
	Seed uint64
}

// String returns the number, "" without one.
func (s Seed) String() string {
	if !s.Set {
		return ""
	}
	return strconv.FormatUint(s.Seed, 10)
}

// DefaultConfig returns what the command does without flags.
func DefaultConfig() Config {
	return Config{
		From: "auto", Filter: "bilinear",
		Workers: runtime.GOMAXPROCS(0), MaxPixels: decodeMaxPixels,
	}
}

// format returns the format that the dataset will have.
func (c Config) format() string {
	if c.Format != "" {
		return c.Format
	}
	switch strings.ToLower(filepath.Ext(filepath.Clean(c.Dest))) {
	case ".h5", ".hdf5":
		return formatHDF5
	}
	return formatFlat
}

// images returns the Config with what files of images have by default.
func (c Config) images() Config {
	if c.Color == "" {
		c.Color = "rgb"
	}
	if c.Layout == "" {
		c.Layout = store.CHW
	}
	if c.DType == tensor.Invalid {
		c.DType = tensor.Uint8
	}
	return c
}

// changesPixels reports whether anything was asked for that changes pixels.
func (c Config) changesPixels() bool {
	return c.Resize != nil || c.Crop != nil || c.Color != "" || c.Layout != "" || c.DType != tensor.Invalid || !c.Normalize.none()
}

// channels returns how many the records have.
func (c Config) channels() int {
	if c.Color == "gray" {
		return 1
	}
	return 3
}

// problems lists everything that is wrong with the Config, in terms of the flags.
func (c Config) problems() (list []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(c.Workers < 1, "--workers %d: must be 1 or more", c.Workers)
	add(c.MaxPixels < 1, "--max-pixels %d: must be 1 or more", c.MaxPixels)
	add(c.ShardBytes < 0, "--shard-size %d: must not be negative", c.ShardBytes)
	add(c.Fit != "" && c.Resize == nil, "--fit %s: says how to --resize, which is not given", c.Fit)
	add(c.format() == formatHDF5 && c.ShardBytes != 0, "--shard-size: an HDF5 file has no shards; it is for --format flat")
	if n := len(c.Normalize.Mean); n > 1 && n != c.channels() {
		add(true, "--normalize %s: has %d channels, but --color %s makes %d", c.Normalize, n, c.Color, c.channels())
	}
	add(c.Memory < 0, "--memory %d: must not be negative", c.Memory)
	add(c.MaxErrors.Set && !c.Skip, "--max-errors %v: counts samples that are left out, for which --on-error skip asks", c.MaxErrors)
	add(c.Stratify && c.Split == nil, "--stratify: says how to --split, which is not given")
	add(c.Append && c.Overwrite, "--append and --overwrite: choose one")
	add(c.Append && c.Shuffle.Set, "--append and --shuffle: records of before stay in their order; shuffle while training, or make the whole anew")
	add(c.NormalizeSplit != "" && !c.Normalize.Dataset, "--normalize-split %s: says what --normalize dataset is computed from, which is not given", c.NormalizeSplit)
	add(c.Append && c.Normalize.ofImages() && c.images().DType != tensor.Uint8, "--append and --normalize dataset: the figures would be those of the new records alone; give the numbers that inspect shows")
	c.keepProblems(add)
	for _, place := range []string{c.Source, c.Dest} {
		scheme, _, url := strings.Cut(place, "://")
		add(url && !remote.IsURL(place), "%s: %s:// cannot be used: only paths, and what lies at s3://, gs://, azblob:// or file://", remote.Redact(place), scheme)
	}
	list = append(list, c.World.problems(c)...)
	list = append(list, c.Compress.problems(c)...)
	list = append(list, viewProblems(c)...)
	if _, err := source.ParseFields(c.Fields); err != nil {
		list = append(list, err.Error())
	}
	if _, err := c.images().pipeline(); err != nil {
		list = append(list, strings.Split(err.Error(), "\n")...)
	}
	return list
}

// Validate returns an error that tells all problems at once.
func (c Config) Validate() error {
	if p := c.problems(); len(p) > 0 {
		return errors.New(strings.Join(p, "\n"))
	}
	return nil
}
