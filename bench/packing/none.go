//go:build !cgo

// Command packing measures writing compressed HDF5 files, which needs cgo and libhdf5.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "packing: built without cgo, so it writes no HDF5")
	os.Exit(1)
}
