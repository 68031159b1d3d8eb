package field

import "github.com/penstock/penstock/store"

// Job makes one field of the dataset of one field of the source.
type Job interface {
	NewWorker() Worker
}

// Worker is the part of a worker that makes one field.
type Worker interface {
	// Probe tries the value of a sample and, if it can be used, makes it the measure for all.
	// It returns the field of the dataset.
	Probe(name string, value []byte) (store.Field, error)

	// Do makes the value of a record of that of a sample, in the memory of dst where it fits.
	// The sample may be bad, or show that the run as a whole cannot go on.
	Do(name string, dst, value []byte) (out []byte, bad, fatal error)
}
