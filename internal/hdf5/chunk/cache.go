package chunk

import "sync"

// cacheBytes is the default of Options.CacheBytes.
const cacheBytes = 64 << 20

// cache keeps chunks of which only a part was wanted, since neighboring records are often wanted next. It is safe for
// concurrent use; a chunk that several callers want is decompressed by a single caller.
type cache struct {
	most int // chunks

	mu      sync.Mutex
	entries map[int64]*entry
	ends    entry // next is the entry that was used last, prev the one to evict first
}

// entry is one chunk of the cache. An entry with users is not evicted.
type entry struct {
	place      int64
	users      int
	prev, next *entry

	fill  sync.Mutex // held while buf is made
	ok    bool       // buf is the chunk
	blank bool       // the chunk was never written, and buf is not used
	buf   []byte
}

// newCache returns a cache of most chunks. ends is both ends of a ring of entries in the order of their last use, so
// that moving an entry to the front has no special case.
func newCache(most int) *cache {
	c := &cache{most: most, entries: make(map[int64]*entry)}
	c.ends.prev, c.ends.next = &c.ends, &c.ends
	return c
}

// take returns the entry of a chunk for use until give. The caller may have to fill it. There are never more than
// c.most-1 users, so one entry is always free.
func (c *cache) take(place int64) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[place]
	if e == nil {
		e = c.room()
		e.place, e.ok = place, false
		c.entries[place] = e
	} else {
		e.unlink()
	}
	e.users++
	e.link(&c.ends)
	return e
}

// find is like take, but returns nil if the chunk is not in the cache.
func (c *cache) find(place int64) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[place]
	if e != nil {
		e.users++
	}
	return e
}

// give ends a use of an entry. An entry with users is not evicted, as they read its bytes without a lock.
func (c *cache) give(e *entry) {
	c.mu.Lock()
	e.users--
	c.mu.Unlock()
}

// room returns a new entry while the cache may have more, and otherwise the entry that was not used for longest.
func (c *cache) room() *entry {
	if len(c.entries) < c.most {
		return new(entry)
	}
	e := c.ends.prev
	for e.users > 0 {
		e = e.prev
	}
	e.unlink()
	delete(c.entries, e.place)
	return e
}

// room returns the memory of the entry, which is allocated when it is first needed.
func (e *entry) room(size int) []byte {
	e.buf = grow(e.buf, size)
	return e.buf
}

func (e *entry) link(after *entry) {
	e.prev, e.next = after, after.next
	after.next.prev = e
	after.next = e
}

func (e *entry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
