package source

import "iter"

// Ahead yields the samples that it is given, up to n of which are being read meanwhile, so
// that the time until the first byte of one is spent on the others. It holds the values of
// those that wait to be taken: no more than n.
func Ahead(samples iter.Seq2[Sample, error], fields, n int) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		stop := make(chan struct{})
		order := make(chan *fetched, n)
		go fetch(samples, fields, order, stop)
		defer func() {
			close(stop)
			for f := range order { // until nobody reads any more
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

// fetched is a sample that is read, or being read.
type fetched struct {
	sample Sample
	err    error // of the source
	done   chan struct{}
}

// fetch sends samples in their order, and reads each in a goroutine of its own.
func fetch(samples iter.Seq2[Sample, error], fields int, order chan<- *fetched, stop <-chan struct{}) {
	defer close(order)
	for sample, err := range samples {
		f := &fetched{sample: sample, err: err, done: make(chan struct{})}
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
			f.sample.Data = unreadable{v.values, err}
		}()
	}
}
