package remote

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Policy says how a Client treats a store that does not answer as it should. The zero value of
// every field is usable.
type Policy struct {
	Attempts int // of one request; 0 means 8
	// after which a request is given up, with all attempts, not counting pauses that the store asks for; 0 means 1 minute
	Total   time.Duration
	Stall   time.Duration // without a single byte, after which an attempt is given up; 0 means 10 seconds
	Backoff time.Duration // pause before the second attempt, then twice as long each time, up to 5 seconds; 0 means 50 ms
	// after which a ranged read that is late gets a second one beside it; 0 means by experience, -1 never
	Hedge time.Duration

	// Retry is called with a sentence for each attempt that failed and is repeated. It may be nil.
	// It is called from any goroutine, and must not block.
	Retry func(text string)
}

// refusedAttempts is how often a request is made, beside the SDK's own attempts, where nothing listens, or the host has
// no address, as long as the store has answered nothing yet: then its name is wrong, or it is not running. A store that
// has answered may come back, and is asked as often as any other.
const refusedAttempts = 1

func (p Policy) withDefaults() Policy {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	if p.Attempts == 0 {
		p.Attempts = 8
	}
	set(&p.Total, time.Minute)
	set(&p.Stall, 10*time.Second)
	set(&p.Backoff, 50*time.Millisecond)
	return p
}

// Validate reports every field that cannot be.
func (p Policy) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		bad  bool
	}{{"Attempts", p.Attempts < 0}, {"Total", p.Total < 0}, {"Stall", p.Stall < 0}, {"Backoff", p.Backoff < 0},
		{"Hedge", p.Hedge < -1}} {
		if f.bad {
			errs = append(errs, fmt.Errorf("remote: Policy.%s is negative", f.name))
		}
	}
	return errors.Join(errs...)
}

const maxBackoff = 5 * time.Second

// pause returns how long to wait before attempt n, 1 being the second: somewhere between half
// and all of what doubles each time, so that clients that failed together do not come back
// together.
func (p Policy) pause(n int) time.Duration {
	d := min(maxBackoff, p.Backoff<<min(n-1, 20))
	if d <= 0 {
		d = maxBackoff
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}
