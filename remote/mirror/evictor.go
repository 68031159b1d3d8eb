package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/internal/sys/usage"
)

// evictor keeps all mirrors of a cache folder within their limit. It removes mirrors that no process has open first,
// the mirror unused for longest first; then the segments of its own mirror that were unused for longest. Segments in
// use are never removed.
type evictor struct {
	dir, own string
	limit    int64

	mu      sync.Mutex
	used    int64 // bytes of all mirrors when look measured them, plus what this process has added since
	looked  time.Time
	looking time.Duration // the time that look takes

	segments *segments // segments of this process's mirror
	evicted  *atomic.Int64
}

// errNoRoom says that the limit is reached and everything in the cache is in use.
var errNoRoom = errors.New("all that CacheBytes allows is in use")

// mirrorName matches the folder of a mirror, see folderName.
var mirrorName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// newEvictor returns the evictor of one mirror, which shares the folder of the cache with all others. Without a limit,
// all mirrors together may take 90 % of the disk space that is free or that they have: a full disk would stop other
// programs.
func newEvictor(dir, own string, limit int64, s *segments, evicted *atomic.Int64) *evictor {
	k := &evictor{dir: dir, own: own, limit: limit, segments: s, evicted: evicted}
	k.look()
	if limit == 0 {
		free, known := usage.FreeSpace(dir)
		if !known {
			free = 1 << 40
		}
		k.limit = (free + k.used) / 10 * 9
	}
	return k
}

// look measures the disk space of all mirrors. Other processes change it, too, so the count is only an estimate between
// two looks.
func (k *evictor) look() {
	began := time.Now()
	k.used = 0
	for _, name := range k.mirrors() {
		k.used += folderBytes(filepath.Join(k.dir, name))
	}
	k.looked = time.Now()
	k.looking = k.looked.Sub(began)
}

// mirrors returns the folders of all mirrors in the cache.
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

// folderBytes returns the disk space of all files in a folder.
func folderBytes(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // an unreadable folder counts as empty
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			n += diskBytes(info)
		}
		return nil
	})
	return n
}

// room makes room for n more bytes within the limit.
func (k *evictor) room(n int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range 2 { // used is too high if a page was counted for two blocks, so measure and try again
		if k.used+n > k.limit && time.Since(k.looked) >= 20*k.looking {
			k.look()
		}
		if k.used+n > k.limit {
			k.evict(k.used + n - k.limit)
		}
	}
	if k.used+n > k.limit {
		return errNoRoom
	}
	k.used += n
	return nil
}

// free removes at least n bytes, and reports whether it could.
func (k *evictor) free(n int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.evict(n) >= n
}

// evict removes n bytes and a little more, so that the next block does not need to evict again, and returns how many
// bytes it removed.
func (k *evictor) evict(n int64) (freed int64) {
	n += min(k.limit/64, 64<<20)
	for _, name := range k.idle() {
		if freed >= n {
			break
		}
		freed += removeIdle(filepath.Join(k.dir, name))
	}
	if freed < n && k.segments.index.state != nil && !k.segments.index.fits {
		freed += k.segments.evict(n - freed)
	}
	k.used = max(0, k.used-freed)
	k.evicted.Add(freed)
	return freed
}

// idle returns the other mirrors, the mirrors unused for longest first.
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

// removeIdle removes a mirror that no process has open, and returns the disk space that it had. It renames the folder
// first: a process that opens the mirror at this moment makes a new mirror instead of finding half of the old mirror.
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
	gone := dir + ".gone" // a process that waits for the lock then finds another folder under the name
	if os.RemoveAll(gone) != nil || os.Rename(dir, gone) != nil {
		return 0
	}
	_ = os.RemoveAll(gone) // the next removeIdle removes what is left
	return n
}

// pages returns the bytes of all pages that a part of a file touches: a disk stores whole pages.
func pages(off, n int64) int64 {
	page := int64(os.Getpagesize())
	return (off+n+page-1)/page*page - off/page*page
}

// fullness returns the reason why blocks are held in memory.
func fullness(dir string, err error) string {
	if errors.Is(err, errNoRoom) {
		return err.Error()
	}
	return fmt.Sprintf("%s: %v", dir, err)
}
