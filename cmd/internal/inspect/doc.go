// Package inspect is the command inspect: what a dataset holds (Describe), whether its bytes
// are what was written (Verify), where each of them lies (Chart), what it looks like
// (Preview), what single records hold (Show), figures of all values (Survey), whether two
// datasets are the same (Diff), and all of it on a page (Compile). Each answer is a value that prints itself for people and that is, as JSON, the
// command's stable output for programs.
//
// HDF5 files are read by package meta, in Go; files made elsewhere are shown as the tree
// that they are.
package inspect
