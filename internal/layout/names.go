package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/tensor"
)

// Format name of manifests, and the newest version of the format that this program reads.
const (
	FormatName    = "penstock"
	FormatVersion = 5
)

// Versions of the manifest of a dataset that was changed: shards have files with other names than the names that follow
// from its columns, and records are deleted.
const (
	VersionRenamed = 3
	VersionDeleted = 4
	versionNames   = 5 // a field has a name that is none for IsName
)

// VersionOf returns the version in the manifest of a dataset with these fields: 5 if a name is not as [IsName] has it,
// 2 with masks, boxes, keypoints or instances, and 1 without. A version is no higher than the fields need, so that
// older readers refuse only the datasets that they would misread.
func VersionOf(fields []tensor.Spec) int {
	version := 1
	for _, f := range fields {
		switch {
		case !IsName(f.Name):
			return versionNames
		case f.OnImage() || f.Instances != "":
			version = 2
		}
	}
	return version
}

// ManifestName is the file that makes a folder a flat dataset.
const ManifestName = "manifest.json"

// Names of a dataset's metadata in an HDF5 file.
const (
	HDF5Manifest = "/penstock/manifest"
	hdf5Sums     = "/penstock/crc/"
)

// HDF5View is the attribute format of an HDF5 file that refers to the records of a flat dataset, for other programs.
const HDF5View = "penstock view"

// IsFlat reports whether path is a folder with a manifest.
func IsFlat(path string) bool {
	info, err := os.Stat(filepath.Join(path, ManifestName))
	return err == nil && info.Mode().IsRegular()
}

// Names of a dataset's metadata in a folder of Zarr.
const (
	ZarrManifest = "penstock/manifest/c.0" // makes the folder a dataset of penstock; to others, an array of bytes
	ZarrNode     = "zarr.json"             // the metadata of a group or an array
	ZarrSums     = "c.0"                   // the only chunk of an array of checksums
)

// OfNewest reports whether each generation replaces a file of metadata of Zarr: the root's, which has the metadata of
// all arrays, and the manifest array's, which has the manifest's length.
func OfNewest(name string) bool { return name == ZarrNode || name == "penstock/manifest/"+ZarrNode }

// IsZarr reports whether path is a folder of Zarr that penstock wrote.
func IsZarr(path string) bool {
	info, err := os.Stat(filepath.Join(path, filepath.FromSlash(ZarrManifest)))
	return err == nil && info.Mode().IsRegular()
}

// Manifest returns the name, inside the folder of a dataset of penstock, of the file that has the manifest of its
// newest generation, except after a writer that ended before it could replace that.
func Manifest(path string) string {
	if !IsFlat(path) && IsZarr(path) {
		return ZarrManifest
	}
	return ManifestName
}

// KeepsGenerations reports whether path is a folder with the manifest of a dataset, flat or of Zarr: such a dataset
// can have several generations.
func KeepsGenerations(path string) bool { return IsFlat(path) || IsZarr(path) }

// IsName reports whether a name of a tag or instance is usable in files on every system: up to 100 letters,
// digits, _ and -, which - does not begin. A regexp of that would take 8 ms of every program's start.
func IsName(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && c != '_' && !(c == '-' && i > 0) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= 100
}

// CheckSplitNames checks names of splits: each is as [IsFieldName] has it, and no two are the same.
func CheckSplitNames(names []string) error {
	for i, name := range names {
		if !IsFieldName(name) {
			return fmt.Errorf("split %q: %s", name, FieldNameRule)
		}
		if slices.Index(names, name) != i {
			return fmt.Errorf("split %q: there are two of that name", name)
		}
	}
	return nil
}

// SourceNames returns the position of the field whose content is source names, or -1.
func SourceNames(fields []tensor.Spec) int {
	return slices.IndexFunc(fields, func(f tensor.Spec) bool { return f.Content == tensor.SourceName })
}

// SourceNameField is the name of the field whose content is source names.
const SourceNameField = "source_name"

// MaxFields is how many fields a dataset can have.
const MaxFields = 10000

// MaxRecords limits the number of records of a dataset. It leaves room to multiply a record number by a record's size.
const MaxRecords = 1 << 46

// PixelBytes reports whether store.Info.NormalizeByStatistics applies to a field: to bytes with a layout, or with two
// axes or more, such as images of one channel.
func PixelBytes(f tensor.Spec) bool {
	return f.DType == tensor.Uint8 && !f.Ragged && !f.OnImage() && (f.Layout != "" || len(f.Shape) > 1)
}

// Channels returns how many channels a record of a field has and how many consecutive elements belong to a channel
// before the next channel starts, see store.Field.Channels.
func Channels(f tensor.Spec) (n, run int) {
	switch {
	case f.Layout == tensor.CHW && len(f.Shape) == 3:
		return f.Shape[0], f.Shape[1] * f.Shape[2]
	case f.Layout == tensor.HWC && len(f.Shape) == 3:
		return f.Shape[2], 1
	}
	return 1, f.Shape.Elems()
}
