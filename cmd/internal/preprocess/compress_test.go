package preprocess

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

func TestCompressFlags(t *testing.T) {
	for line, want := range map[string]prepare.Compress{
		"a b.h5":                 {},
		"a b --compress none":    {},
		"a b.h5 --compress gzip": {Method: prepare.Gzip},
		"a b.zarr --compress zstd:19 --chunk-records 32":         {Method: prepare.Zstd, Level: 19, ChunkRecords: 32},
		"a b.h5 --compress gzip:9 --chunk-records 32":            {Method: prepare.Gzip, Level: 9, ChunkRecords: 32},
		"a b.h5 --compress gzip --chunk-bytes 1MiB":              {Method: prepare.Gzip, ChunkBytes: 1 << 20},
		"a b --format hdf5 --compress gzip:1 --shuffle-bytes on": {Method: prepare.Gzip, Level: 1, Shuffle: "on"},
	} {
		c, err := parseFlags(t, line)
		if err != nil || c.Compress != want {
			t.Errorf("%s: %+v, %v", line, c.Compress, err)
		}
	}
	for line, want := range map[string]string{
		"a b --compress gzip":                                      "--compress: is for HDF5 files and Zarr, such as DEST.h5 or DEST.zarr; a flat dataset is mapped as it is",
		"a b.h5 --compress lzf":                                    "--compress lzf: must be none, gzip, gzip:1 to gzip:9, zstd, or zstd:1 to zstd:22",
		"a b.h5 --compress zstd":                                   "--compress zstd: an HDF5 file takes gzip",
		"a b.zarr --compress gzip":                                 "--compress gzip: Zarr takes zstd",
		"a b.h5 --compress gzip:0":                                 "--compress gzip:0: the level must be from 1 to 9",
		"a b.h5 --compress gzip:x":                                 "--compress gzip:x: the level must be from 1 to 9",
		"a b.h5 --chunk-records 4":                                 "--chunk-records, --chunk-bytes, --shuffle-bytes: say how to --compress, which is not given",
		"a b.h5 --compress gzip --chunk-records 0":                 "--chunk-records 0: must be a whole number above 0",
		"a b.h5 --compress gzip --chunk-bytes some":                "--chunk-bytes some: must be a whole number above 0",
		"a b.h5 --compress gzip --chunk-records 2 --chunk-bytes 5": "--chunk-records and --chunk-bytes: choose one",
		"a b.h5 --compress gzip --shuffle-bytes maybe":             "--shuffle-bytes maybe: must be one of auto, on, off",
		"a b.h5 --append --compress gzip --resize 8":               "--append and --compress: new records are stored as the existing ones are; leave --compress, --chunk-records, --chunk-bytes and --shuffle-bytes out",
	} {
		if _, err := parseFlags(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A recipe with compression makes flat datasets, too, and appends.
func TestCompressInRecipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	require.NoError(t, os.WriteFile(file, []byte("options:\n  compress: gzip:7\n  chunk-records: 5\n"), 0o666))
	for line, want := range map[string]prepare.Compress{
		"a b.h5 --pipeline " + file:                   {Method: prepare.Gzip, Level: 7, ChunkRecords: 5},
		"a b.h5 --compress gzip:2 --pipeline " + file: {Method: prepare.Gzip, Level: 2, ChunkRecords: 5},
		"a b --pipeline " + file:                      {},
		"a b.h5 --append --pipeline " + file:          {},
	} {
		c, err := parseFlags(t, line)
		if err != nil || c.Compress != want {
			t.Errorf("%s: %+v, %v", line, c.Compress, err)
		}
	}
}
