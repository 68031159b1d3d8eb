package source

import "iter"

// Prefetch yields the given samples in their order, and reads up to n of them ahead, each in a goroutine of its
// own, so that slow reads (files in a bucket) overlap. At most n samples with their values wait to be taken. The
// yielded Data is [Loaded]. When the caller stops, Prefetch waits for the reads that are under way, as they use the
// files of the source.
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

// prefetched is a sample whose read is under way or done.
type prefetched struct {
	sample Sample
	err    error // of the source
	done   chan struct{}
}

// prefetch starts the read of each sample and sends the samples to order, whose capacity limits how many reads are
// under way. It is the only goroutine that uses the source.
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

// Loaded is Data that was read before. Err is the error of that read.
type Loaded struct {
	Tuple
	Err error
}

// Read returns the values that could be read, and the error of the read.
func (u Loaded) Read(v *Values) error {
	_ = u.Tuple.Read(v) // as far as there are values
	return u.Err
}
