// Package h5chunk reads the records of any HDF5 dataset that package h5meta describes, and
// makes chunks for new ones. It is pure Go; with -tags libdeflate it inflates and deflates by
// libdeflate, with the same results.
package h5chunk
