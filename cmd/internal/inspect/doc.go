// Package inspect is the command inspect, with filter, join and view. Each other subcommand is a package below: it
// computes an answer, which prints itself for people and is, as JSON, the command's stable output for programs. The
// command itself prints a summary.
//
// HDF5 files are read by package internal/hdf5/meta, without libhdf5.
package inspect
