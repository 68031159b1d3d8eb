// Package heap reads the heaps of HDF5 files: local ones have names, global ones values of variable length, fractal
// ones links and attributes.
package heap
