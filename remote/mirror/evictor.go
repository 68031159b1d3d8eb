package mirror

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"sync"
	"time"
)

// evictor keeps all mirrors of a cache folder within their bound: mirrors that nobody has open
// go first, those unused for longest before others; then the segments of the own mirror that
// were not used for longest. What a process uses is never taken.
type evictor struct {
	dir, own string
	limit    int64

	mu      sync.Mutex
	used    int64 // of all mirrors, when they were looked at, and of this process since
	looked  time.Time
	looking time.Duration // that a look takes
}

var errNoRoom = errors.New("all that CacheBytes allows is in use")

var mirrorName = regexp.MustCompile(`^[0-9a-f]{32}$`)

func newEvictor(dir, own string, limit int64) *evictor {
	k := &evictor{dir: dir, own: own, limit: limit}
	k.look()
	if limit == 0 {
		free, err := freeBytes(dir)
		if err != nil {
			free = 1 << 40
		}
		k.limit = (free + k.used) / 10 * 9
	}
	return k
}

// look measures all mirrors.
func (k *evictor) look() {
	began := time.Now()
	k.used = 0
	for _, name := range k.mirrors() {
		k.used += folderBytes(filepath.Join(k.dir, name))
	}
	k.looked = time.Now()
	k.looking = k.looked.Sub(began)
}

func (k *evictor) mirrors() (names []string) {
	list, err := os.ReadDir(k.dir)
	if err != nil {
		return nil
	}
	for _, e := range list {
		if e.IsDir() && mirrorName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

func folderBytes(dir string) (n int64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			n += diskBytes(info)
		}
	}
	return n
}

// room sees to it that n more bytes are within the bound.
func (k *evictor) room(d *cache, n int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range 2 { // what was counted is more than there is, where pages were counted twice
		if k.used+n > k.limit && time.Since(k.looked) >= 20*k.looking {
			k.look()
		}
		if k.used+n > k.limit {
			k.evict(d, k.used+n-k.limit)
		}
	}
	if k.used+n > k.limit {
		return errNoRoom
	}
	k.used += n
	return nil
}

// free takes out at least n bytes, and reports whether it could.
func (k *evictor) free(d *cache, n int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.evict(d, n) >= n
}

// evict takes out n bytes and a little more, and returns how many it were.
func (k *evictor) evict(d *cache, n int64) (freed int64) {
	n += min(k.limit/64, 64<<20)
	for _, name := range k.idle() {
		if freed >= n {
			break
		}
		freed += removeIdle(filepath.Join(k.dir, name))
	}
	if freed < n && d.state != nil && !d.fits {
		freed += d.evict(n - freed)
	}
	k.used = max(0, k.used-freed)
	d.counts.evicted.Add(freed)
	return freed
}

// idle returns the other mirrors, those that were not open for longest first.
func (k *evictor) idle() []string {
	type mirror struct {
		name string
		last time.Time
	}
	var list []mirror
	for _, name := range k.mirrors() {
		if info, err := os.Stat(filepath.Join(k.dir, name, stateName)); err == nil && name != k.own {
			list = append(list, mirror{name, info.ModTime()})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].last.Before(list[j].last) })
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.name
	}
	return names
}

// removeIdle removes a mirror that nobody has open, and returns what it took.
func removeIdle(dir string) int64 {
	f, err := os.OpenFile(filepath.Join(dir, stateName), os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	lock := locks{f}
	if !lock.try(lockSetup, 1) || lock.held(lockUsers, maxUsers) {
		return 0
	}
	n := folderBytes(dir)
	gone := dir + ".gone" // a process that waits for the lock sees that the name is another's
	if os.RemoveAll(gone) != nil || os.Rename(dir, gone) != nil {
		return 0
	}
	_ = os.RemoveAll(gone) // what is left of it the next one removes
	return n
}

// evict takes segments out of the own mirror, those that were not used for longest first.
func (d *cache) evict(n int64) (freed int64) {
	var list []int64
	for s := range d.grid.segments {
		if x, from, to := d.segment(s); !x.books && d.anyThere(x, from, to) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b int64) int { return int(int64(d.state.used[a]) - int64(d.state.used[b])) })
	for _, s := range list {
		if freed >= n {
			break
		}
		freed += d.evictSegment(s)
	}
	return freed
}

// segment returns the blocks of a segment.
func (d *cache) segment(s int64) (x *extent, from, to int64) {
	list := d.grid.extents
	x = list[sort.Search(len(list), func(i int) bool { return list[i].segment+list[i].segments > s })]
	from = (s - x.segment) * x.perSeg
	return x, from, min(from+x.perSeg, x.count)
}

func (d *cache) anyThere(x *extent, from, to int64) bool {
	for b := from; b < to; b++ {
		if d.state.has(x.base + b) {
			return true
		}
	}
	return false
}

// evictSegment takes one out, if nobody uses it: first the bits, then, if still nobody does,
// the bytes. A process that begins to use it in between sees the one or is seen.
func (d *cache) evictSegment(s int64) (freed int64) {
	x, from, to := d.segment(s)
	lock := lockBlocks + x.base + from
	if !d.state.lock.try(lock, to-from) {
		return 0
	}
	defer d.state.lock.free(lock, to-from)
	f, err := d.root.OpenFile(x.name, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	d.pins.unless(s, func() { freed = d.empty(f, x, from, to, s) })
	return freed
}

// empty takes all blocks of a segment out, unless another process uses one. The disk gets back whole
// pages: so what lies between those that are there is given back with them, as pages that are left
// of blocks which went before.
func (d *cache) empty(f *os.File, x *extent, from, to, segment int64) (freed int64) {
	var was []int64
	for b := from; b < to; b++ {
		if d.state.has(x.base + b) {
			was = append(was, b)
			d.state.remove(x.base + b)
		}
	}
	if d.state.others(segment) {
		for _, b := range was {
			d.state.add(x.base + b)
		}
		return 0
	}
	for _, b := range was {
		d.unlearn(x, b)
	}
	before := fileBytes(f)
	for b := from; b < to; {
		end := b + 1
		for end < to && x.gap(end-1, end) == 0 {
			end++
		}
		_ = punch(f, x.offset(b), x.spanBytes(b, end)) // what that gave is seen below
		b = end
	}
	return max(0, before-fileBytes(f)) // others may be writing to it
}

// fileBytes returns what an open file takes on disk.
func fileBytes(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return diskBytes(info)
}

// pages returns how many bytes the pages have that a part of a file has something of.
func pages(off, n int64) int64 {
	page := int64(os.Getpagesize())
	return (off+n+page-1)/page*page - off/page*page
}

// fullness says why blocks are held in memory.
func fullness(dir string, err error) string {
	if errors.Is(err, errNoRoom) {
		return err.Error()
	}
	return fmt.Sprintf("%s: %v", dir, err)
}
