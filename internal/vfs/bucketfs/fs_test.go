package bucketfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/farbucket"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/remote"
)

func put(t testing.TB, c *requests.Client, key string, data []byte) {
	t.Helper()
	require.NoError(t, c.WriteAll(context.Background(), key, data, remote.WriteOptions{}))
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	if _, err := r.Read(b); err != nil {
		panic(err)
	}
	return b
}

// mounted returns the paths of a bucket with some objects, three names a page.
func mounted(t *testing.T) (*requests.Client, *FS) {
	t.Helper()
	c := requests.NewClient(&membucket.Memory{Name: "mem://lab", Pages: 3}, remote.Policy{})
	for _, key := range []string{"top.txt", "photos/cat/1.jpg", "photos/cat/2.jpg", "photos/cat/3.jpg", "photos/cat/4.jpg", "photos/dog/1.jpg", "photos/read.me", "photosynthesis"} {
		put(t, c, key, []byte(key))
	}
	f := New(t.Context(), c, "")
	t.Cleanup(vfs.Mount("mem:/lab", f))
	return c, f
}

func names(list []fs.DirEntry) (out []string) {
	for _, e := range list {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}

func TestFolders(t *testing.T) {
	mounted(t)
	for path, want := range map[string][]string{
		"mem:/lab":            {"photos/", "photosynthesis", "top.txt"},
		"mem:/lab/photos":     {"cat/", "dog/", "read.me"},
		"mem:/lab/photos/cat": {"1.jpg", "2.jpg", "3.jpg", "4.jpg"},
	} {
		list, err := vfs.ReadDir(path)
		if err != nil || !slices.Equal(names(list), want) {
			t.Errorf("%s: %v, %v", path, names(list), err)
		}
	}
	if _, err := vfs.ReadDir("mem:/lab/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	got, err := vfs.Glob("mem:/lab/photos/*/1.jpg")
	if err != nil || !slices.Equal(got, []string{"mem:/lab/photos/cat/1.jpg", "mem:/lab/photos/dog/1.jpg"}) {
		t.Errorf("glob: %v, %v", got, err)
	}
	var walked []string
	err = vfs.WalkDir("mem:/lab/photos", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			walked = append(walked, path)
		}
		return err
	})
	if err != nil || len(walked) != 6 || walked[0] != "mem:/lab/photos/cat/1.jpg" {
		t.Errorf("walk: %v, %v", walked, err)
	}
}

func TestStat(t *testing.T) {
	mounted(t)
	for path, dir := range map[string]bool{"mem:/lab": true, "mem:/lab/photos": true, "mem:/lab/top.txt": false} {
		info, err := vfs.Stat(path)
		if err != nil || info.IsDir() != dir || info.Mode().IsRegular() == dir {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
	}
	if _, err := vfs.Stat("mem:/lab/phot"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is only the beginning of keys: %v", err)
	}
	if data, err := vfs.ReadFile("mem:/lab/photos/cat/2.jpg", []byte("is ")); err != nil || string(data) != "is photos/cat/2.jpg" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := vfs.Open("mem:/lab/photos"); err == nil {
		t.Error("a folder was opened as a file")
	}
	if vfs.Mounted("mem:/labyrinth/x") || !vfs.Mounted("mem:/lab/../lab/x") {
		t.Error("Mounted depends on more than the path")
	}
}

func TestFile(t *testing.T) {
	c, _ := mounted(t)
	for _, n := range []int{0, 1, 700, blockBytes - 1, blockBytes, 3*blockBytes + 17} {
		data := noise(n)
		put(t, c, "large", data)
		f, err := vfs.Open("mem:/lab/large")
		require.NoError(t, err)
		if n < 1000 {
			if err := iotest.TestReader(f, data); err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		if got, err := io.ReadAll(io.NewSectionReader(f, 0, int64(n))); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %d were read, %v", n, len(got), err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// counting counts reads, and fails some.
type counting struct {
	*membucket.Memory
	reads atomic.Int64
	fail  atomic.Bool
}

func (c *counting) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	c.reads.Add(1)
	if c.fail.Load() {
		return remote.Body{}, remote.NewError("read", key, remote.ErrPermission, nil)
	}
	return c.Memory.ReadRange(ctx, key, off, n, etag)
}

// Many readers of one place make one request; a failed one is not remembered; what was
// replaced is found out.
func TestBlocksAreSharedAndOfOneVersion(t *testing.T) {
	b := &counting{Memory: &membucket.Memory{}}
	c := requests.NewClient(b, remote.Policy{})
	data := noise(1000)
	put(t, c, "x", data)
	f, err := New(t.Context(), c, "").Open("x")
	require.NoError(t, err)
	x := f.(vfs.File)
	b.fail.Store(true)
	if _, err := x.ReadAt(make([]byte, 10), 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
	b.fail.Store(false)
	b.reads.Store(0)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			got := make([]byte, 10)
			if _, err := x.ReadAt(got, int64(10*i)); err != nil || !bytes.Equal(got, data[10*i:10*i+10]) {
				t.Errorf("at %d: %v", 10*i, err)
			}
		})
	}
	wg.Wait()
	if n := b.reads.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	other, err := New(t.Context(), c, "").Open("x")
	require.NoError(t, err)
	put(t, c, "x", noise(999))
	if _, err := other.(vfs.File).ReadAt(make([]byte, 10), 0); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("an object that was replaced: %v", err)
	}
}

// The blocks that are held have a bound.
func TestCacheIsBounded(t *testing.T) {
	c := newCache(func(remote.Object, int64, []byte) error { return nil })
	for i := range int64(100) {
		if _, err := c.get(remote.Object{Key: "x", Size: 1000 * blockBytes}, i); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.blocks) > cacheBytes/blockBytes {
		t.Errorf("%d blocks", len(c.blocks))
	}
}

// A reader of many blocks in order has more of them read before it needs them; they stay up to the limit.
func TestReadaheadGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int64
		c := newCache(func(remote.Object, int64, []byte) error {
			loads.Add(1)
			time.Sleep(time.Second)
			return nil
		})
		c.setLimit(100 * blockBytes)
		o := remote.Object{Key: "x", Size: 80 * blockBytes}
		for round, most := range []time.Duration{9 * time.Second, 0} {
			began := time.Now()
			for i := range int64(80) {
				if _, err := c.get(o, i); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took > most || loads.Load() != 80 {
				t.Errorf("round %d: %v and %d reads", round, took, loads.Load())
			}
		}
		if c.setLimit(10 * blockBytes); len(c.blocks) != 10 || c.held != 10*blockBytes {
			t.Errorf("%d blocks of %d bytes", len(c.blocks), c.held)
		}
	})
}

// A range is read alone, in parts at the same time, unless it is in blocks that are there.
func TestReadRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &farbucket.Bucket{Memory: &membucket.Memory{Name: "mem://lab"}, Trip: time.Second}
		data := noise(3*blockBytes + 1000)
		b.Put("x", data)
		f, err := New(t.Context(), requests.NewClient(b, remote.Policy{}), "").Open("x")
		require.NoError(t, err)
		b.Requests()
		for _, c := range []struct{ off, n, requests, bytes int64 }{
			{100, 50, 1, 50}, {5, 2*blockBytes + 7, 3, 2*blockBytes + 7}, {0, 0, 0, 0}, {3*blockBytes + 990, 10, 1, 10},
		} {
			began, got := time.Now(), make([]byte, c.n)
			if err := f.(vfs.Ranger).ReadRange(got, c.off); err != nil || !bytes.Equal(got, data[c.off:c.off+c.n]) {
				t.Errorf("%+v: %v", c, err)
			}
			sum, list := int64(0), b.Requests()
			for _, r := range list {
				sum += r.Bytes
			}
			if int64(len(list)) != c.requests || sum != c.bytes || time.Since(began) > b.Trip {
				t.Errorf("%+v: %v after %v", c, list, time.Since(began))
			}
		}
		if _, err := f.(vfs.File).ReadAt(make([]byte, 1), blockBytes); err != nil {
			t.Fatal(err)
		}
		b.Requests()
		if err := f.(vfs.Ranger).ReadRange(make([]byte, 100), blockBytes+5); err != nil || len(b.Requests()) != 0 {
			t.Errorf("a range of a block that is there: %v", err)
		}
		for _, c := range [][2]int64{{-1, 5}, {int64(len(data)), 1}, {1 << 62, 5}} {
			if err := f.(vfs.Ranger).ReadRange(make([]byte, c[1]), c[0]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes at %d: %v", c[1], c[0], err)
			}
		}
		b.Put("x", noise(len(data)+1))
		if err := f.(vfs.Ranger).ReadRange(make([]byte, 10), 100); !errors.Is(err, remote.ErrChanged) ||
			!strings.Contains(err.Error(), "do not change") {
			t.Errorf("an object that was replaced: %v", err)
		}
	})
}

// A listed folder looks as it did before, without a request for names or sizes; other folders take requests.
func TestList(t *testing.T) {
	c, f := mounted(t)
	before := walk(t)
	require.NoError(t, f.List("photos", nil))
	put(t, c, "photos/cat/5.jpg", []byte("later"))
	if after := walk(t); !slices.Equal(before, after) {
		t.Errorf("%v, and %v before it was listed", after, before)
	}
	for path, want := range map[string]string{"mem:/lab/photos/cat/3.jpg": "photos/cat/3.jpg", "mem:/lab/top.txt": "top.txt"} {
		if data, err := vfs.ReadFile(path, nil); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	put(t, c, "photos/cat/2.jpg", []byte("photos/cat/2.gif"))
	if _, err := vfs.ReadFile("mem:/lab/photos/cat/2.jpg", nil); !errors.Is(err, remote.ErrChanged) {
		t.Errorf("an object that was replaced: %v", err)
	}
	for _, path := range []string{"mem:/lab/photos/cat/5.jpg", "mem:/lab/photos/cow"} {
		if _, err := vfs.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if info, err := vfs.Stat("mem:/lab/photos"); err != nil || !info.IsDir() || info.Name() != "photos" {
		t.Errorf("%v, %v", info, err)
	}
	if err := f.List("nothing", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func walk(t *testing.T) (names []string) {
	t.Helper()
	err := vfs.WalkDir("mem:/lab/photos", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		names = append(names, fmt.Sprint(path, info.Size(), info.Sys()))
		return err
	})
	require.NoError(t, err)
	return names
}

// Parts that were kept are read only as they were written.
func TestKeep(t *testing.T) {
	b := &counting{Memory: &membucket.Memory{}}
	c := requests.NewClient(b, remote.Policy{})
	data := noise(1000)
	put(t, c, "x", data)
	dir := t.TempDir()
	read := func(want int64) {
		t.Helper()
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		defer root.Close()
		fsys := New(t.Context(), c, "")
		fsys.Keep(root)
		b.reads.Store(0)
		f, err := fsys.Open("x")
		require.NoError(t, err)
		got := make([]byte, len(data))
		if _, err := f.(vfs.File).ReadAt(got, 0); err != nil || !bytes.Equal(got, data) || b.reads.Load() != want {
			t.Errorf("%v; %d reads, want %d", err, b.reads.Load(), want)
		}
	}
	read(1)
	read(0)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	path := filepath.Join(dir, files[0].Name())
	for _, damage := range []func(file []byte) []byte{
		func(file []byte) []byte { file[500] ^= 1; return file },
		func(file []byte) []byte { return file[:999] },
		func([]byte) []byte { return nil },
	} {
		file, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, damage(file), 0o600)
		}
		require.NoError(t, err)
		read(1)
		read(0)
	}
	require.NoError(t, os.Chmod(dir, 0o500))
	data = noise(999)
	put(t, c, "x", data)
	read(1) // a folder that takes nothing
}
