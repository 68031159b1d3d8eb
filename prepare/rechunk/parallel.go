package rechunk

import (
	"context"
	"sync"
)

// group is goroutines that end with the first error.
type group struct {
	wg     sync.WaitGroup
	cancel context.CancelCauseFunc
	slots  chan struct{}
	once   sync.Once
	err    error
}

// newGroup returns a group of at most n goroutines at a time, and a context that ends with its first error.
func newGroup(ctx context.Context, n int) (*group, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &group{cancel: cancel, slots: make(chan struct{}, n)}, ctx
}

// start runs f once there is room.
func (g *group) start(f func() error) {
	g.slots <- struct{}{}
	g.wg.Go(func() {
		defer func() { <-g.slots }()
		if err := f(); err != nil {
			g.once.Do(func() { g.err = err; g.cancel(err) })
		}
	})
}

// wait returns the first error, once all have ended.
func (g *group) wait() error {
	g.wg.Wait()
	g.cancel(nil)
	return g.err
}
