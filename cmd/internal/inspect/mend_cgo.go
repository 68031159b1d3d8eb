//go:build cgo

package inspect

// mendedExt makes what preprocess writes an HDF5 file, as what it reads is one.
const mendedExt = ".h5"
