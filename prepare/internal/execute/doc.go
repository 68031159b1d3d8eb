// Package execute makes records of samples: in any number of workers, one sample at a time, and gives them to a commit
// in the order of the source.
package execute
