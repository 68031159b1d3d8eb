package remote

import (
	"errors"
	"fmt"
	"time"
)

// Policy says how package mirror treats a store that fails or does not answer. The zero value of
// every field is usable.
type Policy struct {
	Attempts int // attempts of one request; 0 means 8
	// Total is the time after which a request is given up, over all attempts. Pauses that the store
	// asks for do not count. 0 means 1 minute.
	Total   time.Duration
	Stall   time.Duration // without a single byte, after which an attempt is given up; 0 means 10 seconds
	Backoff time.Duration // before the second attempt; doubles each time, up to 5 seconds; 0 means 50 ms

	// Retry is called with a sentence for each attempt that failed and is repeated, from any
	// goroutine. It must not block, and may be nil.
	Retry func(text string)
}

// Validate reports every field with a negative value.
func (p Policy) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		bad  bool
	}{{"Attempts", p.Attempts < 0}, {"Total", p.Total < 0}, {"Stall", p.Stall < 0}, {"Backoff", p.Backoff < 0}} {
		if f.bad {
			errs = append(errs, fmt.Errorf("remote: Policy.%s is negative", f.name))
		}
	}
	return errors.Join(errs...)
}
