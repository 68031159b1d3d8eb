// Package uncounted lets the benchmarks make Loaders that keep no statistics, to measure what
// these cost. It has no other use: such a Loader neither tells what limits it nor reads ahead
// of cold storage.
package uncounted

// Next has loader.New make Loaders of that kind while it is true. It is for programs of one
// goroutine.
var Next bool
