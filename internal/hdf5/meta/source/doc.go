// Package source reads the structures of an HDF5 file by their address: a Source compares every extent with the true
// size of the file, and a Cursor reads the fields of one structure.
package source
