// Package execute turns samples into records, in any number of workers, one sample at a time, and commits them in the
// order of the source.
//
// A [Job] says what to do with each field; package field has the operations. A [Worker] does the job for one sample
// and leaves the result in a [Slot]. [Run] moves a bounded number of slots round a ring: workers fill the slots in
// any order, and the worker that fills the next slot in order commits this slot and the filled slots behind it. So
// the dataset does not depend on the number of workers, memory is bounded, and no goroutine exists only to wait.
//
// A sample that cannot be used is an error in its slot, for the caller to count, list or refuse; any other error ends
// the run.
package execute
