package layout

import (
	"os"
	"path/filepath"
)

// ManifestName is the file that makes a folder a flat dataset.
const ManifestName = "manifest.json"

// Names of a dataset's metadata in an HDF5 file.
const (
	HDF5Manifest = "/penstock/manifest"
	hdf5Sums     = "/penstock/crc/"
)

// HDF5View is what the attribute format of an HDF5 file says that names the records of a flat
// dataset, for other programs to read them.
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

// IsZarr reports whether path is a folder of Zarr that penstock wrote.
func IsZarr(path string) bool {
	info, err := os.Stat(filepath.Join(path, filepath.FromSlash(ZarrManifest)))
	return err == nil && info.Mode().IsRegular()
}
