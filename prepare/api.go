package prepare

import (
	"context"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/raw"
)

// Formats of a dataset.
const (
	Flat = part.Flat
	HDF5 = part.HDF5
	Zarr = part.Zarr
)

// Parts of a Config.
type (
	Images    = field.Options   // what is done to images and arrays
	Normalize = field.Normalize // how the numbers x/255 are normalized
	Rules     = field.Rules     // which files of images are taken
	Depth     = field.Depth     // what happens to images that 8-bit gray or RGB cannot hold
	Strata    = field.Strata    // shares of splits in every class
	Share     = samples.Share   // a split and its share of the records
	Rank      = part.Rank       // which part of the work a process does
)

// SampleError is the error of a sample that cannot be used. The error of Run wraps it; errors.As finds it.
type SampleError = field.SampleError

// Values of Rules.Deep.
const (
	KeepDeep   = field.KeepDeep
	HighByte   = field.HighByte
	RefuseDeep = field.RefuseDeep
)

// Depths are the names of the values of Rules.Deep.
func Depths() []string { return field.Depths }

// Alphas are the treatments of transparency by name, except refusal.
func Alphas() map[string]imagefile.Alpha { return field.Alphas }

// AnyField is the text of Strata without a field.
const AnyField = field.AnyField

// ParseNormalize reads none, dataset, dataset:FIELD@AXIS,..., imagenet, inception, clip, or
// MEAN/STD such as 0.5,0.5,0.5/0.25,0.25,0.25, in units of x/255.
func ParseNormalize(text string) (Normalize, error) { return field.ParseNormalize(text) }

// ParseSplit reads NAME=SHARE,... such as train=0.9,val=0.1. Shares that do not add up to 1
// are an error.
func ParseSplit(text string) ([]Share, error) { return samples.ParseSplit(text) }

// ParseRank reads a rank and the number of processes. A rank of "auto" is taken from the
// environment of the launcher.
func ParseRank(rank, size string) (Rank, error) { return part.ParseRank(rank, size) }

// CheckTransforms returns the error of a list of transforms in JSON whose entries may name their fields.
func CheckTransforms(text []byte) error {
	_, err := field.SplitTransforms(text)
	return err
}

// OpenOptions says how Open reads a source. The zero value is usable.
type OpenOptions = raw.Options

// Open opens raw samples as a loader.Source, without making a dataset: records are read when the loader asks for them,
// and are equal to the records that preprocess --keep-encoded writes. A loader.Images transform decodes image files.
func Open(ctx context.Context, path string, o OpenOptions) (*raw.Source, error) {
	return raw.Open(ctx, path, o)
}
