package preprocess

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
	"github.com/penstock/penstock/prepare/source"
)

// parseFlags returns the prepare.Config of a command line, or its problems.
func parseFlags(t *testing.T, line string) (prepare.Config, error) {
	t.Helper()
	f := newFlags()
	cmd := Command()
	cmd.ResetFlags()
	f.register(cmd)
	require.NoError(t, cmd.ParseFlags(strings.Fields(line)))
	err := f.check(cmd.Flags().Args())
	return f.config, err
}

func TestFlagDefaults(t *testing.T) {
	f := newFlags()
	cmd := Command()
	cmd.ResetFlags()
	f.register(cmd)
	require.NoError(t, f.check([]string{"a", "b"}))
	c := f.config
	if c.Source != "a" || c.Dest != "b" || c.Images.ChangesPixels() || c.Skip ||
		c.Images.Resize != nil || c.Images.Crop != nil || !c.Images.Normalize.None() || c.DatasetFormat() != prepare.Flat || c.Workers < 1 || c.Images.Filter != "bilinear" {
		t.Errorf("config %+v", c)
	}
}

func TestFlagProblems(t *testing.T) {
	cases := []struct{ line, want string }{
		{"a b --workers 0", "--workers 0: must be from 1 to 4096"},
		{"a b --workers 1000000", "--workers 1000000: must be from 1 to 4096"},
		{"a -", "DEST -: a dataset is not written to standard output; give the name of a folder, or one that ends in .h5 or .zarr"},
		{"s3:/b/x b", "s3:/b/x: a URL has two slashes: s3://b/x"},
		{"a b --max-pixels -3", "--max-pixels -3: must be 1 or more"},
		{"a b --from lance", "--from lance: must be one of auto, " + strings.Join(source.Kinds, ", ") + ", stream"},
		{"a b --progress bars", "--progress bars: must be one of auto, json"},
		{"a b --progress json --quiet", "--quiet, --progress json: choose one"},
		{"a b --format npz", "--format npz: must be one of flat, hdf5, zarr"},
		{"a b --dtype int4", "--dtype int4: must be one of uint8, uint16, float16, bfloat16, float32"},
		{"a b --layout nchw", "--layout nchw: must be one of chw, hwc; did you mean \"chw\"?"},
		{"a b --color cmyk", "--color cmyk: must be one of rgb, gray"},
		{"a b --alpha gray", "--alpha gray: must be one of dropped, white, black, refused"},
		{"a b --alpha white --keep-encoded", "--keep-encoded: files stay as they are, or are made smaller by --resize; no other flag can change their pixels"},
		{"a b --crop 224 --keep-encoded", "--keep-encoded: files stay as they are, or are made smaller by --resize; no other flag can change their pixels"},
		{"a b --keep-encoded --exif-orientation applied", "--keep-encoded: files stay as they are, or are made smaller by --resize; no other flag can change their pixels"},
		{"a b --keep-encoded --resize 64x64", "--keep-encoded: files can only be made smaller, by --resize to one number, with --fit shorter or longer"},
		{"a b --keep-encoded --resize 64 --larger-than 32", "--larger-than 32: is less than what --resize 64 makes, and no photo is enlarged"},
		{"a b --keep-encoded --resize 64 --jpeg-quality 101", "--jpeg-quality 101: must be from 1 to 100"},
		{"a b --resize 64 --jpeg-quality 80", "--jpeg-quality 80: is for files that --keep-encoded and --resize make smaller"},
		{"a b --keep-encoded --larger-than 9", "--larger-than 9: is for files that --keep-encoded and --resize make smaller"},
		{"a b --filter sinc", "--filter sinc: must be one of bilinear, bicubic, lanczos, box, hamming, nearest"},
		{"a b --on-error panic", "--on-error panic: must be one of fail, skip"},
		{"a b --resize 0", "--resize 0: must be a number of pixels or HEIGHTxWIDTH, such as 224 or 224x320"},
		{"a b --resize 1x2x3", "--resize 1x2x3: must be a number of pixels or HEIGHTxWIDTH, such as 224 or 224x320"},
		{"a b --crop -5", "--crop -5: must be a number of pixels or HEIGHTxWIDTH, such as 224 or 224x320"},
		{"a b --fit cover", "--fit cover: says how to --resize, which is not given"},
		{"a b --resize 8x8 --fit shorter", "transform Resize: fit shorter takes one size, not 2"},
		{"a b --shard-size lots", `--shard-size lots: "lots" is not a size; write it like 64MiB`},
		{"a b.h5 --shard-size 1M", "--shard-size: an HDF5 file has no shards; it is for --format flat and zarr"},
		{"a b --normalize vgg", "--normalize vgg: must be one of none, imagenet, dataset, inception, clip; or MEAN/STD, such as 0.5,0.5,0.5/0.25,0.25,0.25"},
		{"a b --normalize 0.5/0", "--normalize 0.5/0: deviation 0 must be positive"},
		{"a b --normalize 1,2/1,2", "--normalize 1,2/1,2: 2 means and 2 deviations; give 1 or 3 of each"},
		{"a b --normalize x/1", `--normalize x/1: mean "x" is not a number`},
		{"a b --normalize imagenet --color gray", "--normalize imagenet: has 3 channels, but --color gray makes 1"},
		{"a", "needs two arguments, SOURCE and DEST, not 1"},
		{"--dtype x --resize y --fit cover a", "wrong usage:\n  needs two arguments, SOURCE and DEST, not 1\n  --dtype x: must be one of uint8, uint16, float16, bfloat16, float32\n" +
			"  --resize y: must be a number of pixels or HEIGHTxWIDTH, such as 224 or 224x320"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			if _, err := parseFlags(t, c.line); err == nil || err.Error() != c.want {
				t.Errorf("problems\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

func TestFormatByName(t *testing.T) {
	for _, c := range []struct{ format, dest, want string }{
		{"", "x", prepare.Flat}, {"", "x.h5", prepare.HDF5}, {"", "x.HDF5", prepare.HDF5}, {"", "x.h5/y", prepare.Flat}, {"", "x.h5/", prepare.HDF5}, {"flat", "x.h5", prepare.Flat}, {"", "x.zarr", prepare.Zarr}, {"", "s3://lab/x.zarr?region=us-east-1&awssecret=hush-hush", prepare.Zarr}, {"", "s3://lab/a/x.h5?region=us-east-1&awssecret=hush-hush", prepare.HDF5}, {"hdf5", "x", prepare.HDF5},
	} {
		if got := (prepare.Config{Format: c.format, Dest: c.dest}).DatasetFormat(); got != c.want {
			t.Errorf("format %q of %s is %s, want %s", c.format, c.dest, got, c.want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string][]int{"": nil, "224": {224}, "224x320": {224, 320}} {
		if got, err := parseSize(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("parseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}
