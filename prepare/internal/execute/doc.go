// Package execute turns samples into records, in any number of workers, one sample at a time, and commits them
// in the order of the source.
package execute
