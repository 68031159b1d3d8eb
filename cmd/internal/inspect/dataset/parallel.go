package dataset

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// InParts cuts n records into parts and works on them with several goroutines; workers 0 means
// GOMAXPROCS. start gives each of them a function of its own, which gets the number of a
// part and its records [a, b). The parts do not depend on the workers.
func InParts(ctx context.Context, n, parts, workers int, start func() func(ctx context.Context, part, a,
	b int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(workers, parts) {
		all.Go(func() {
			work := start()
			for {
				k := int(next.Add(1)) - 1
				if k >= parts || ctx.Err() != nil {
					return
				}
				a, b := Bound(n, k, parts), Bound(n, k+1, parts)
				if err := work(ctx, k, a, b); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Bound returns the first record of part k.
func Bound(n, k, parts int) int { return n/parts*k + min(k, n%parts) }
