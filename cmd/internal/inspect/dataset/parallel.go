package dataset

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// InParts cuts n records into parts and works on them in several goroutines; workers 0 means
// GOMAXPROCS. Each goroutine calls start once, for a function with buffers of its own, and calls
// this function with the number of a part and its records [a, b). The parts do not depend on the
// number of workers, so that a result that is summed up part by part, in order, is the same on
// every machine.
func InParts(ctx context.Context, n, parts, workers int, start func() func(ctx context.Context, part, a,
	b int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	for range min(workers, parts) {
		all.Go(func() error {
			work := start()
			for k := int(next.Add(1)) - 1; k < parts; k = int(next.Add(1)) - 1 {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := work(ctx, k, Bound(n, k, parts), Bound(n, k+1, parts)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// Bound returns the first record of part k. The parts differ in length by at most 1.
func Bound(n, k, parts int) int { return n/parts*k + min(k, n%parts) }
