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

	// Do makes the value of a record from the value of a sample, in the memory of dst where it fits. With a SampleError
	// the sample cannot be used; after any other error the run as a whole cannot continue.
	Do(name string, dst, value []byte) (out []byte, err error)
}

// SampleError is the error of a sample that cannot be used, where others can.
type SampleError struct{ Err error }

func (e *SampleError) Error() string { return e.Err.Error() }

func (e *SampleError) Unwrap() error { return e.Err }

// ofSample makes an error one of the sample.
func ofSample(err error) error {
	if err == nil {
		return nil
	}
	return &SampleError{err}
}
