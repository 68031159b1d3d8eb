package source

import (
	"context"
	"sync"
	"sync/atomic"
)

// mostOverlapping is how many calls Overlap has under way at a time.
const mostOverlapping = 32

// Overlap calls f with each number below n, several at a time, so that requests to a bucket overlap. At the end of ctx
// it begins no further call.
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
