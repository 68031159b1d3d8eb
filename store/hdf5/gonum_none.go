//go:build !cgo || nolibhdf5

package hdf5

// containers are the implementations of HDF5 files in this build. The first container writes new
// files.
var containers = []container{encoded{}}

// Version states that this build has no libhdf5.
func Version() string { return "HDF5 without libhdf5" }
