package bucketfs

import (
	"errors"
	"fmt"
	"sync"

	"github.com/penstock/penstock/remote"
)

// Blocks are large, as a request costs as much time as some MiB.
const (
	blockBytes      = 4 << 20
	readaheadBlocks = 3         // blocks that are read in advance for a sequential reader
	mostReadahead   = 16        // as many for one that has read several in a row
	cacheBytes      = 128 << 20 // of a cache, unless it was given another limit
	maxCached       = 16 << 20  // of an object that a cache holds whole
)

// wholeObject is the number of a block that is all of an object.
const wholeObject = -1

// blockKey names a block of a version of an object.
type blockKey struct {
	key, etag string
	number    int64
}

// block is a part of an object that is in memory, or under way.
type block struct {
	done chan struct{}
	data []byte
	err  error
	size int64
	used int64 // when, in gets
}

// cache holds blocks. Each is read once, however many ask for it at a time.
type cache struct {
	load func(o remote.Object, off int64, dst []byte) error

	mu     sync.Mutex
	clock  int64
	limit  int64 // of held
	held   int64 // bytes of blocks
	blocks map[blockKey]*block
	last   blockKey // that was asked for
	row    int64    // how many blocks before that one were asked for in order
}

func newCache(load func(remote.Object, int64, []byte) error) *cache {
	return &cache{load: load, limit: cacheBytes, blocks: make(map[blockKey]*block)}
}

// setLimit sets how many bytes of blocks stay.
func (c *cache) setLimit(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = bytes
	c.evictLocked(0)
}

// has reports whether the blocks of a range are there or under way.
func (c *cache) has(o remote.Object, off, n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := off / blockBytes; k*blockBytes < off+n; k++ {
		if c.blocks[blockKey{o.Key, o.ETag, k}] == nil {
			return false
		}
	}
	return true
}

// get returns a block of an object, which must not be changed. If the cache holds the block before it, get assumes
// that the object is read in order, and fetches the following blocks, too: the more, the more were asked for in order.
func (c *cache) get(o remote.Object, number int64) ([]byte, error) {
	c.mu.Lock()
	b := c.wantLocked(o, number)
	row := c.inRowLocked(blockKey{o.Key, o.ETag, number})
	if _, ok := c.blocks[blockKey{o.Key, o.ETag, number - 1}]; ok && number > 0 {
		ahead := min(max(readaheadBlocks, 2*row), mostReadahead)
		for k := number + 1; k <= number+ahead && k*blockBytes < o.Size; k++ {
			c.wantLocked(o, k)
		}
	}
	c.mu.Unlock()
	<-b.done
	if b.err == nil {
		return b.data, nil
	}
	c.forget(blockKey{o.Key, o.ETag, number}, b)
	return nil, b.err
}

// inRowLocked returns how many blocks just before this block were asked for in order.
func (c *cache) inRowLocked(key blockKey) int64 {
	next := c.last
	next.number++
	switch key {
	case c.last:
	case next:
		c.row++
	default:
		c.row = 0
	}
	c.last = key
	return c.row
}

// begin begins to read a whole object.
func (c *cache) begin(o remote.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wantLocked(o, wholeObject)
}

// wantLocked returns a block, which is read if it is not there.
func (c *cache) wantLocked(o remote.Object, number int64) *block {
	key := blockKey{o.Key, o.ETag, number}
	c.clock++
	if b := c.blocks[key]; b != nil {
		b.used = c.clock
		return b
	}
	off, size := number*blockBytes, min(blockBytes, o.Size-number*blockBytes)
	if number == wholeObject {
		off, size = 0, o.Size
	}
	c.evictLocked(size)
	b := &block{done: make(chan struct{}), size: size, used: c.clock}
	c.blocks[key] = b
	c.held += size
	go func() {
		defer close(b.done)
		data := make([]byte, size)
		if b.err = c.load(o, off, data); b.err == nil {
			b.data = data
		}
		b.err = explain(b.err)
	}()
	return b
}

// explain adds to the error of a read what to do.
func explain(err error) error {
	if errors.Is(err, remote.ErrChanged) {
		return fmt.Errorf("%w; do not change a source while it is read", err)
	}
	return err
}

// evictLocked makes room for a block by dropping the block that was unused for longest. Users of
// the dropped block keep its memory.
func (c *cache) evictLocked(size int64) {
	for c.held+size > c.limit && len(c.blocks) > 0 {
		var oldest blockKey
		least := int64(-1)
		for key, b := range c.blocks {
			if least < 0 || b.used < least {
				oldest, least = key, b.used
			}
		}
		c.held -= c.blocks[oldest].size
		delete(c.blocks, oldest)
	}
}

// forget removes a block whose read failed, so that the next reader tries again. Another block may have its place by
// then.
func (c *cache) forget(key blockKey, b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks[key] == b {
		c.held -= b.size
		delete(c.blocks, key)
	}
}
