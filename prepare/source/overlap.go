package source

import (
	"context"
	"sync"
	"sync/atomic"
)

// mostOverlapping is the most calls that Overlap runs at a time.
const mostOverlapping = 32

// Overlap calls f with each number below n and returns after all calls. Up to mostOverlapping calls run at a time,
// so that the round trips of requests to a bucket overlap. After the end of ctx it starts no further call.
func Overlap(ctx context.Context, n int, f func(i int)) {
	var calls sync.WaitGroup
	var next atomic.Int64
	for range min(n, mostOverlapping) {
		calls.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	calls.Wait()
}
