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
	Source string // folder of images
	Dest   string // dataset to make
	From   string // "auto" or "imagefolder"
	Format string // "flat", "hdf5", or "" to tell from Dest's name

	Resize []int  // one length, or height and width; nil leaves sizes as they are
	Fit    string // shorter, longer, exact, cover, pad; "" is shorter for one length, exact for two
	Crop   []int  // centre crop: one length for a square, or height and width; nil for none
	Filter string // nearest, box, bilinear, hamming, bicubic, lanczos

	Color     string // "rgb" or "gray"
	Layout    string // store.CHW or store.HWC
	DType     tensor.DType
	Normalize Normalize

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
		From: "auto", Filter: "bilinear", Color: "rgb", Layout: store.CHW, DType: tensor.Uint8,
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
	if _, err := c.pipeline(); err != nil {
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
