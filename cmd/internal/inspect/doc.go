// Package inspect has the command inspect, which prints a summary of a dataset, and its
// subcommands. filter, join and view are in this package; every other subcommand is a package
// below.
//
// A subcommand computes its answer as a struct, in a function without input or output of its own,
// and the struct has two forms: Render prints it for people, and its JSON fields are the stable
// output for programs. Fields of the structs are therefore added but not renamed.
//
// Package dataset opens the DATASET of each subcommand. HDF5 files are read by package
// internal/hdf5/meta, without libhdf5, so that inspect works in every build.
package inspect
