package prepare

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/crash"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
)

// schedules is how many schedules TestSchedules makes up: a few in every run of the tests, and with -schedules 500
// as many as a release should survive.
var (
	schedules   = flag.Int("schedules", 6, "how many schedules of ranks TestSchedules runs")
	storeURL    = flag.String("store-url", "", "URL of a folder in a bucket that TestSchedules uses, and no folder and no bucket of files")
	storeFolder = flag.String("store-folder", "", "where the objects of -store-url are files")
)

// TestSchedules runs ranks as engines do: each several times, some at the same time, on several machines that share
// a folder or a bucket but no locks, killed at any moment, with late listings. In the end every rank has succeeded
// once. The merge then makes the bytes of a single run, or names what it does not see yet.
func TestSchedules(t *testing.T) {
	source, out := manyPictures(t, 40), t.TempDir()
	want := filepath.Join(out, "ds")
	one := child{Source: source, Dest: want, Workers: 1, Split: "train=0.8,val=0.2", Dedup: true}
	one.run(t, 0)
	for seed := range *schedules {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSchedule(t, seed, one)
			s.run()
			s.merge(want)
		})
	}
}

// schedule is the way in which an engine runs the ranks of one dataset.
type schedule struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	work   child
	made   string // where the dataset has its files
}

// attempt is one process of a rank.
type attempt struct {
	child
	kill int // step; 0: none
}

// newSchedule has ranks do the work of one process, in a folder or in a bucket.
func newSchedule(t *testing.T, seed int, one child) *schedule {
	s := &schedule{t: t, random: rand.New(rand.NewPCG(uint64(seed), 22)), dir: crash.MemoryDir(t), work: one}
	s.work.Checkpoint = time.Millisecond
	s.work.Dest = filepath.Join(s.dir, "shared", "ds")
	s.made = s.work.Dest
	if *storeURL != "" {
		folder, options, _ := strings.Cut(*storeURL, "?")
		s.work.Dest = fmt.Sprintf("%s/%d/ds?%s", folder, seed, options)
		s.made = filepath.Join(*storeFolder, fmt.Sprint(seed), "ds")
	} else if seed%2 == 1 && cloud.Built {
		s.work.Bucket, s.work.Dest = filepath.Join(s.dir, "bucket"), urlOf("out/ds")
		s.made = filepath.Join(s.work.Bucket, "out", "ds")
		rawtest.Put(t, s.work.Bucket, "keep", nil)
	}
	return s
}

func (s *schedule) run() {
	size := 1 + s.random.IntN(4)
	var list []attempt
	for rank := range size {
		for range 1 + s.random.IntN(3) {
			list = append(list, s.attempt(rank, size))
		}
	}
	s.random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	done := make(map[int]bool)
	for len(list) > 0 {
		n := min(len(list), 1+s.random.IntN(3))
		for rank, ok := range s.together(list[:n]) {
			done[rank] = done[rank] || ok
		}
		list = list[n:]
	}
	for rank := range size {
		for n := 0; !done[rank]; n++ {
			again := s.attempt(rank, size)
			if n > 3 {
				again.kill = 0
			}
			if n > 10 {
				s.t.Fatalf("rank %d of %d never succeeds", rank, size)
			}
			done[rank] = s.together([]attempt{again})[rank]
		}
	}
}

func (s *schedule) attempt(rank, size int) attempt {
	a := attempt{child: s.work}
	a.World = part.Rank{Index: rank, Size: size}
	a.Machine = string(rune('A' + s.random.IntN(3)))
	a.Spool = filepath.Join(s.dir, "spool"+a.Machine)
	if s.random.IntN(2) == 0 {
		a.kill = 1 + s.random.IntN(80)
	}
	if s.random.IntN(2) == 0 {
		a.Late = 1 + s.random.Uint64()
	}
	return a
}

// together runs attempts at the same time, and says which ranks succeeded. An error must name the rank.
func (s *schedule) together(list []attempt) map[int]bool {
	var mu sync.Mutex
	var all sync.WaitGroup
	done := make(map[int]bool)
	for _, a := range list {
		all.Go(func() {
			killed, _, err := a.try(a.kill)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done[a.World.Index] = done[a.World.Index] || !killed
			} else if !namesPart(err, a.World.Index, a.World.Size) {
				s.t.Errorf("an error without its rank, %d: %v", a.World.Index, err)
			}
		})
	}
	all.Wait()
	return done
}

// namesPart reports whether an error names a part.
func namesPart(err error, rank, size int) bool {
	return strings.Contains(err.Error(), fmt.Sprintf("part %d of %d", rank, size)) || strings.Contains(err.Error(), part.Name(rank, size))
}

// merge merges with a late view of the parts, which may be an error, and then with the true one.
func (s *schedule) merge(want string) {
	w := s.work
	w.Merge, w.Spool = true, filepath.Join(s.dir, "spool")
	for _, w.Late = range []uint64{1 + s.random.Uint64(), 0} {
		_, _, err := w.try(0)
		if err == nil {
			break
		}
		if w.Late == 0 || !strings.Contains(err.Error(), "ds.parts") && !strings.Contains(err.Error(), "parts are missing") {
			s.t.Fatalf("merge: %v", err)
		}
	}
	if w.Bucket != "" {
		for name := range foldertest.Files(s.t, s.made) {
			if strings.HasSuffix(name, ".tmp") { // of a write that was killed; a store shows none of them
				require.NoError(s.t, os.Remove(filepath.Join(s.made, name)))
			}
		}
	}
	checkSame(s.t, s.made, want)
}

// lateParts makes this process see the folder of parts of dest late, whether it is a folder or in a bucket.
func lateParts(dest string, seed uint64) (end func()) {
	v := &lateView{seed: seed, asked: make(map[string]int), own: make(map[string]bool)}
	if !remote.IsURL(dest) {
		folder := part.Folder(dest)
		return vfs.Mount(folder, lateFolder{folder, v})
	}
	open := upload.OpenURL
	upload.OpenURL = func(ctx context.Context, text string) (remote.Bucket, *remote.URL, error) {
		b, u, err := open(ctx, text)
		return lateBucket{b, v}, u, err
	}
	return func() {}
}

// lateView does not show a name until it was asked for some times, up to 3.
type lateView struct {
	seed  uint64
	mu    sync.Mutex
	asked map[string]int
	own   map[string]bool // what this process has written it sees
}

func (v *lateView) hides(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked[name]++
	return !v.own[name] && v.asked[name] <= int(crc32.ChecksumIEEE(fmt.Append(nil, v.seed, name))%4)
}

// lateFolder is a folder of the system. A hidden folder hides all that it holds.
type lateFolder struct {
	path string
	view *lateView
}

func (f lateFolder) look(op, name string) (path string, err error) {
	path = filepath.Join(f.path, filepath.FromSlash(name))
	if top, _, _ := strings.Cut(name, "/"); top != "." && f.view.hides(top) {
		err = &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return path, err
}

func (f lateFolder) Open(name string) (fs.File, error) {
	path, err := f.look("open", name)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

func (f lateFolder) Stat(name string) (fs.FileInfo, error) {
	path, err := f.look("stat", name)
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
}

func (f lateFolder) ReadFile(name string, buf []byte) ([]byte, error) {
	path, err := f.look("open", name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	return append(buf, data...), err
}

func (f lateFolder) ReadDir(name string) (list []fs.DirEntry, err error) {
	path, err := f.look("readdir", name)
	if err != nil {
		return nil, err
	}
	all, err := os.ReadDir(path)
	for _, e := range all {
		if name != "." || !f.view.hides(e.Name()) {
			list = append(list, e)
		}
	}
	return list, err
}

// lateBucket is a bucket whose listings, and answers on the files of parts, are late.
type lateBucket struct {
	remote.Bucket
	view *lateView
}

var errLate = errors.New("is not seen yet")

func (b lateBucket) hides(key string) bool {
	return strings.Contains(key, ".parts/") && strings.HasSuffix(key, ".json") && b.view.hides(key)
}

func (b lateBucket) Stat(ctx context.Context, key string) (remote.Object, error) {
	if b.hides(key) {
		return remote.Object{}, remote.NewError("stat", key, remote.ErrNotFound, errLate)
	}
	return b.Bucket.Stat(ctx, key)
}

func (b lateBucket) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (remote.Page, error) {
	page, err := b.Bucket.ListPage(ctx, prefix, delimiter, token)
	var seen []remote.Object
	for _, o := range page.Objects {
		if !strings.Contains(o.Key, ".parts/") || !b.view.hides("listing of "+o.Key) {
			seen = append(seen, o)
		}
	}
	page.Objects = seen
	return page, err
}

func (b lateBucket) NewWriter(ctx context.Context, key string, opts remote.WriteOptions) (remote.Writer, error) {
	b.view.mu.Lock()
	b.view.own[key] = true
	b.view.mu.Unlock()
	return b.Bucket.NewWriter(ctx, key, opts)
}
