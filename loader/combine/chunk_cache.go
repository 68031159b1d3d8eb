package combine

import (
	"container/list"
	"sync"

	"github.com/penstock/penstock/loader"
)

// chunkCache keeps the most recently used chunks, up to a limit, and all chunks in use. A chunk is
// decoded once even if several goroutines ask for it together: the first one enters it before
// reading, and the others wait for its done channel. mu is never held while a chunk is decoded.
type chunkCache struct {
	mu      sync.Mutex
	limit   int64 // 0 means loader.DefaultChunkCache
	planned int64 // limit of an order of chunks, in place of limit; 0 means none
	used    int64
	entries map[chunkKey]*chunkEntry
	order   list.List // of *chunkEntry, the most recently used first
	spare   [][]byte  // memory of chunks that were dropped
	read    int64     // bytes of chunks that were read
}

// chunkKey names a chunk.
type chunkKey struct {
	part   *member
	field  string
	number int
}

// chunkEntry is a chunk. data and err may be read once done is closed. Memory of an entry with
// references is never reused.
type chunkEntry struct {
	key  chunkKey
	data []byte
	err  error
	done chan struct{}
	refs int
	at   *list.Element
}

// get returns a chunk of size bytes, which read fills if the chunk is not cached. The chunk stays
// until release. A chunk whose read failed is removed before the waiting goroutines see the error,
// so that a later call tries again.
func (c *chunkCache) get(key chunkKey, size int, read func(dst []byte) error) (*chunkEntry, error) {
	c.mu.Lock()
	if e := c.entries[key]; e != nil {
		e.refs++
		c.order.MoveToFront(e.at)
		c.mu.Unlock()
		<-e.done
		if e.err != nil {
			c.release(e)
			return nil, e.err
		}
		return e, nil
	}
	if c.entries == nil {
		c.entries = make(map[chunkKey]*chunkEntry)
	}
	e := &chunkEntry{key: key, done: make(chan struct{}), refs: 1}
	e.at = c.order.PushFront(e)
	c.entries[key], c.used, c.read = e, c.used+int64(size), c.read+int64(size)
	c.evictLocked()
	e.data = c.roomLocked(size)
	c.mu.Unlock()
	failed := true
	defer func() {
		if failed { // or read has panicked
			c.mu.Lock()
			delete(c.entries, key)
			c.mu.Unlock()
			close(e.done)
			c.release(e)
		}
	}()
	if e.err = read(e.data); e.err != nil {
		return nil, e.err
	}
	failed = false
	close(e.done)
	return e, nil
}

// plan sets the limit of the cache to the memory of an order of chunks; 0 ends the order, and the
// limit of SetCache applies again.
func (c *chunkCache) plan(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned = bytes
	c.evictLocked()
}

// touch marks cached chunks as the most recently used chunks.
func (c *chunkCache) touch(keys []chunkKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if e := c.entries[key]; e != nil {
			c.order.MoveToFront(e.at)
		}
	}
}

// has reports whether a chunk is cached or being read.
func (c *chunkCache) has(key chunkKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[key] != nil
}

// roomLocked returns memory for a chunk, which it reuses if possible: chunks of megabytes would
// keep the garbage collector busy.
func (c *chunkCache) roomLocked(size int) []byte {
	for i, b := range c.spare {
		if cap(b) >= size {
			c.spare = append(c.spare[:i], c.spare[i+1:]...)
			return b[:size]
		}
	}
	return make([]byte, size)
}

// release ends one use of a chunk. A chunk that left the cache while in use is dropped by its last
// user.
func (c *chunkCache) release(e *chunkEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.refs--; e.refs == 0 && c.entries[e.key] != e {
		c.dropLocked(e)
	}
	c.evictLocked()
}

// evictLocked drops chunks that are not in use, the least recently used first, until the rest is
// within the limit. Chunks in use may exceed it: refusing them would stop the loop.
func (c *chunkCache) evictLocked() {
	limit := c.limit
	switch {
	case c.planned > 0:
		limit = c.planned
	case limit == 0:
		limit = loader.DefaultChunkCache
	}
	for at := c.order.Back(); at != nil && c.used > limit; {
		e := at.Value.(*chunkEntry)
		at = at.Prev()
		if e.refs == 0 {
			delete(c.entries, e.key)
			c.dropLocked(e)
		}
	}
}

// maxSpare is how many dropped chunks leave their memory for later chunks.
const maxSpare = 8

func (c *chunkCache) dropLocked(e *chunkEntry) {
	c.order.Remove(e.at)
	c.used -= int64(len(e.data))
	if len(c.spare) < maxSpare {
		c.spare = append(c.spare, e.data)
	}
	e.data = nil
}
