// Package farbucket has a bucket that answers after the time of a round trip, for tests of how often a program waits
// for one.
package farbucket

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/remote"
)

// Bucket is a bucket in memory whose requests take Trip each.
type Bucket struct {
	*membucket.Memory
	Trip time.Duration

	mu   sync.Mutex
	asks []Request
}

// Request is one that was made.
type Request struct {
	Op, Key string
	Bytes   int64 // of a read
	Begin   time.Time
}

func (r Request) String() string { return fmt.Sprintf("%v %s %s", r.Begin.UnixMilli(), r.Op, r.Key) }

// Requests returns those that were made since the last call.
func (b *Bucket) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Clone(b.asks)
	b.asks = nil
	return list
}

func (b *Bucket) travel(ctx context.Context, op, key string, bytes int64) error {
	b.mu.Lock()
	b.asks = append(b.asks, Request{op, key, bytes, time.Now()})
	b.mu.Unlock()
	select {
	case <-time.After(b.Trip):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stat implements remote.Bucket.
func (b *Bucket) Stat(ctx context.Context, key string) (remote.Object, error) {
	if err := b.travel(ctx, "stat", key, 0); err != nil {
		return remote.Object{}, err
	}
	return b.Memory.Stat(ctx, key)
}

// ListPage implements remote.Bucket.
func (b *Bucket) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (remote.Page, error) {
	if err := b.travel(ctx, "list", prefix, 0); err != nil {
		return remote.Page{}, err
	}
	return b.Memory.ListPage(ctx, prefix, delimiter, token)
}

// ReadRange implements remote.Bucket.
func (b *Bucket) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	if err := b.travel(ctx, "read", key, n); err != nil {
		return remote.Body{}, err
	}
	return b.Memory.ReadRange(ctx, key, off, n, etag)
}
