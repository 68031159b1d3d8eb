//go:build !cgo || nolibhdf5

package hdf5

// containers are those of this build. The first one writes new files.
var containers = []container{encoded{}}

// Version says that there is no libhdf5 in this build.
func Version() string { return "HDF5 without libhdf5" }
