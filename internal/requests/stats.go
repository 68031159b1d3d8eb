package requests

import (
	"sync/atomic"

	"github.com/penstock/penstock/remote"
)

type counts struct{ requests, retries, failures, bytes atomic.Int64 }

// Stats returns the statistics so far.
func (c *Client) Stats() remote.Stats {
	return remote.Stats{
		Requests: c.counts.requests.Load(), Retries: c.counts.retries.Load(),
		Failures: c.counts.failures.Load(), Bytes: c.counts.bytes.Load(),
	}
}
