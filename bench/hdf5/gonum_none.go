//go:build !cgo

package main

// gonumName is empty: without C there is no libhdf5 to compare with.
func gonumName() string { return "" }

func openGonum(string, int, int) (reader, error) { panic("hdf5: built without cgo") }
