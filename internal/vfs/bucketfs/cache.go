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
	cacheBytes      = 128 << 20 // of a cache
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
	held   int64 // bytes of blocks
	blocks map[blockKey]*block
}

func newCache(load func(remote.Object, int64, []byte) error) *cache {
	return &cache{load: load, blocks: make(map[blockKey]*block)}
}

// get returns a block of an object, which must not be changed. If the cache holds the block before it, get assumes
// that the object is read in order, and fetches the following blocks, too.
func (c *cache) get(o remote.Object, number int64) ([]byte, error) {
	c.mu.Lock()
	b := c.wantLocked(o, number)
	if _, ok := c.blocks[blockKey{o.Key, o.ETag, number - 1}]; ok && number > 0 {
		for k := number + 1; k <= number+readaheadBlocks && k*blockBytes < o.Size; k++ {
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
		if errors.Is(b.err, remote.ErrChanged) {
			b.err = fmt.Errorf("%w; do not change a source while it is read", b.err)
		}
	}()
	return b
}

// evictLocked makes room for a block: the one that was not used for longest goes. Those who have it
// keep its memory.
func (c *cache) evictLocked(size int64) {
	for c.held+size > cacheBytes && len(c.blocks) > 0 {
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

func (c *cache) forget(key blockKey, b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks[key] == b {
		c.held -= b.size
		delete(c.blocks, key)
	}
}
