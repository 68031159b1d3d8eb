//go:build !cgo

package inspect

// mendedExt makes what preprocess writes a folder: without C it writes no HDF5.
const mendedExt = ""
