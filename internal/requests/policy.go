package requests

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/penstock/penstock/remote"
)

// refusedAttempts is how often a request is made, besides the SDK's own attempts, if nothing
// listens, or the host has no address, as long as the store has answered nothing yet: then its name
// is wrong, or it is not running. A store that has answered may come back, and is asked as often as
// any other.
const refusedAttempts = 1

// withDefaults returns p with numbers in the place of zeros.
func withDefaults(p remote.Policy) remote.Policy {
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

const maxBackoff = 5 * time.Second

// pause returns how long to wait before attempt n, where attempt 1 is the second: a random
// time between half of a limit and the limit, which doubles with each attempt, so that
// clients that failed together do not come back together.
func pause(p remote.Policy, n int) time.Duration {
	d := min(maxBackoff, p.Backoff<<min(n-1, 20))
	if d <= 0 {
		d = maxBackoff
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// after returns the pause that a store asks for.
func after(err error) time.Duration {
	var own *remote.Error
	if errors.As(err, &own) {
		return own.After
	}
	return 0
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	for _, kind := range []error{remote.ErrNotFound, remote.ErrNoBucket, remote.ErrPermission, remote.ErrExists,
		remote.ErrChanged, remote.ErrInvalid} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// isAbsent reports whether a request failed because nothing listens at the address, or because the host's
// name has no address.
func isAbsent(err error) bool { return remote.NewError("", "", nil, err).Absent }
