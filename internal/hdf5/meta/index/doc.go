// Package index finds the chunks of a dataset, whichever of the indexes of HDF5 it has.
package index
