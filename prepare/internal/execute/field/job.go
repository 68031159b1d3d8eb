package field

import "github.com/penstock/penstock/store"

// Job makes a field of the dataset from a field of the source. Its workers share it.
type Job interface {
	NewWorker() Worker
}

// Worker makes one field, for one goroutine.
type Worker interface {
	// Probe reads the value of a sample and returns the field of the dataset. If the value is usable, it decides
	// dtype and shape for all samples.
	Probe(name string, value []byte) (store.Field, error)

	// Do makes the value of a record from the value of a sample, in the memory of dst if it fits. After a
	// SampleError only the sample is unusable; any other error ends the run.
	Do(name string, dst, value []byte) (out []byte, err error)
}

// SampleError is the error of a sample that cannot be used, while other samples can.
type SampleError struct{ Err error }

func (e *SampleError) Error() string { return e.Err.Error() }

func (e *SampleError) Unwrap() error { return e.Err }

// ofSample makes an error a SampleError; nil stays nil.
func ofSample(err error) error {
	if err == nil {
		return nil
	}
	return &SampleError{err}
}
