// Package tree walks the B-trees of HDF5 files, versions 1 and 2.
package tree
