//go:build !cgo

package hdf5

// standard is the container of files.
var standard container = encoded{}

// Version says that there is no libhdf5 in this build.
func Version() string { return "HDF5 without libhdf5" }
