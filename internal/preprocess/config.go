package preprocess

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Config is everything that one run depends on. DefaultConfig gives the defaults, Source
// and Dest aside.
type Config struct {
	Source string // folder, file, or glob of files with the samples
	Dest   string // dataset to make
	From   string // kind of source, one of source.Kinds, or "auto"
	Fields string // which columns become which fields, see source.ParseFields; "" for all
	Format string // "flat", "hdf5", or "" to tell from Dest's name

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

	Rules
	KeepEncoded bool // keep files of images as they are, as a field of variable length

	Workers    int   // goroutines that decode, each one image at a time
	ShardBytes int64 // of a flat dataset's largest field, as store.FlatOptions; 0 is its default
	Skip       bool  // leave unreadable samples out instead of failing
	Overwrite  bool
	MaxPixels  int // larger images are refused from their header
}

// Formats of a dataset.
const (
	formatFlat = "flat"
	formatHDF5 = "hdf5"
)

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
	add(c.KeepEncoded && c.changesPixels(), "--keep-encoded: keeps the files as they are, so no other flag can change their pixels")
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
