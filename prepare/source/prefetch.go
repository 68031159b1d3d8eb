package source

import "iter"

// Prefetch yields the samples that it is given, and reads up to n of them in advance, so that reads overlap. It holds
// the values of at most n samples that wait to be taken.
func Prefetch(samples iter.Seq2[Sample, error], fields, n int) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		stop := make(chan struct{})
		order := make(chan *prefetched, n)
		go prefetch(samples, fields, order, stop)
		defer func() {
			close(stop)
			for f := range order { // until prefetch stops
				<-f.done
			}
		}()
		for f := range order {
			<-f.done
			if !yield(f.sample, f.err) || f.err != nil {
				return
			}
		}
	}
}

// prefetched is a sample that is read, or being read.
type prefetched struct {
	sample Sample
	err    error // of the source
	done   chan struct{}
}

// prefetch sends samples in their order, and reads each in a separate goroutine.
func prefetch(samples iter.Seq2[Sample, error], fields int, order chan<- *prefetched, stop <-chan struct{}) {
	defer close(order)
	for sample, err := range samples {
		f := &prefetched{sample: sample, err: err, done: make(chan struct{})}
		select {
		case order <- f:
		case <-stop:
			return
		}
		if err != nil {
			close(f.done)
			return
		}
		go func() {
			defer close(f.done)
			v := NewValues(fields)
			err := f.sample.Data.Read(v)
			f.sample.Data = Loaded{v.values, err}
		}()
	}
}

// Loaded is the Data of a sample that was read before, and of which Err says what is bad.
type Loaded struct {
	Tuple
	Err error
}

// Read implements Data.
func (u Loaded) Read(v *Values) error {
	_ = u.Tuple.Read(v) // as far as there are values
	return u.Err
}
