package bucketfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/penstock/penstock/remote"
)

// file is an object that is open. It implements vfs.File.
type file struct {
	fsys   *FS
	object remote.Object
	name   string

	mu sync.Mutex
	at int64 // of the next Read
}

func (f *file) Name() string               { return f.name }
func (f *file) Close() error               { return nil }
func (f *file) Stat() (fs.FileInfo, error) { return info{name: f.name, size: f.object.Size}, nil }

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.object.Size
	}
	if offset < 0 {
		return 0, failed("seek", f.name, fs.ErrInvalid)
	}
	f.at = offset
	return offset, nil
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, failed("read", f.name, fs.ErrInvalid)
	}
	n := 0
	for n < len(p) && off < f.object.Size {
		b, err := f.fsys.cache.get(f.object, off/blockBytes)
		if err != nil {
			return n, failed("read", f.name, err)
		}
		k := copy(p[n:], b[off%blockBytes:])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Blocks are large, as a request costs as much time as some MiB.
const (
	blockBytes      = 4 << 20
	maxBlocks       = 32
	readaheadBlocks = 3 // blocks that are read in advance for a sequential reader
)

// blockKey names a block of a version of an object.
type blockKey struct {
	key, etag string
	number    int64
}

// block is a part of an object that is there, or under way.
type block struct {
	done chan struct{}
	data []byte
	err  error
	used int64 // when, in gets
}

// cache holds blocks. Each is read once, however many ask for it at a time.
type cache struct {
	load func(o remote.Object, off int64, dst []byte) error

	mu     sync.Mutex
	clock  int64
	blocks map[blockKey]*block
}

func newCache(load func(remote.Object, int64, []byte) error) *cache {
	return &cache{load: load, blocks: make(map[blockKey]*block)}
}

// get returns a block of an object. If the cache holds the block before it, get assumes that
// the object is read in order, and fetches the following blocks, too.
func (c *cache) get(o remote.Object, number int64) ([]byte, error) {
	c.mu.Lock()
	b := c.wantLocked(o, number)
	if _, ok := c.blocks[blockKey{o.Key, o.ETag, number - 1}]; ok {
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

// wantLocked returns a block, which is read if it is not there.
func (c *cache) wantLocked(o remote.Object, number int64) *block {
	key := blockKey{o.Key, o.ETag, number}
	c.clock++
	if b := c.blocks[key]; b != nil {
		b.used = c.clock
		return b
	}
	c.evict()
	b := &block{done: make(chan struct{}), used: c.clock}
	c.blocks[key] = b
	go func() {
		defer close(b.done)
		off := number * blockBytes
		data := make([]byte, min(blockBytes, o.Size-off))
		if b.err = c.load(o, off, data); b.err == nil {
			b.data = data
		}
		if errors.Is(b.err, remote.ErrChanged) {
			b.err = fmt.Errorf("%w; do not change a source while it is read", b.err)
		}
	}()
	return b
}

// evict makes room for a block: the one that was not used for longest goes. Those who have it
// keep its memory.
func (c *cache) evict() {
	for len(c.blocks) >= maxBlocks {
		var oldest blockKey
		least := int64(-1)
		for key, b := range c.blocks {
			if least < 0 || b.used < least {
				oldest, least = key, b.used
			}
		}
		delete(c.blocks, oldest)
	}
}

func (c *cache) forget(key blockKey, b *block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks[key] == b {
		delete(c.blocks, key)
	}
}
