package bucketfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/remote"
)

// lists counts the requests for names, and refuses some.
type lists struct {
	*membucket.Memory
	requests atomic.Int64
	refuse   func(prefix, delimiter string) error
}

func (b *lists) ListPage(ctx context.Context, prefix, delimiter string, token []byte) (remote.Page, error) {
	b.requests.Add(1)
	if b.refuse != nil {
		if err := b.refuse(prefix, delimiter); err != nil {
			return remote.Page{}, err
		}
	}
	return b.Memory.ListPage(ctx, prefix, delimiter, token)
}

func (b *lists) Stat(ctx context.Context, key string) (remote.Object, error) {
	b.requests.Add(1)
	return b.Memory.Stat(ctx, key)
}

// listOf lists a folder of a bucket, several folders at a time or, with inOrder, page by page.
func listOf(t *testing.T, b remote.Bucket, name string, inOrder bool) (*snapshot, error) {
	t.Helper()
	f := New(t.Context(), requests.NewClient(b, remote.Policy{Attempts: 1}), "")
	if inOrder {
		return f.newLister(name).listInOrder()
	}
	err := f.List(name, nil)
	return f.listed.Load(), err
}

func describe(s *snapshot) (lines []string) {
	for folder, list := range s.folders {
		for _, e := range list {
			info, err := e.Info()
			if err != nil {
				panic(err)
			}
			lines = append(lines, fmt.Sprint(folder, "|", e.Name(), e.IsDir(), info.Size(), info.Sys()))
		}
	}
	slices.Sort(lines)
	return lines
}

// randomKeys returns keys below photos: folders in folders, some with many names, some beginning alike.
func randomKeys(rng *rand.Rand) (keys []string) {
	words := []string{"a", "b", "n0", "n01", "n1", "ä", "äö", "日本", "日", "x-y", "x y", "x", "Z", ".h", "9%"}
	var fill func(prefix string, depth int)
	fill = func(prefix string, depth int) {
		for range rng.IntN(5) {
			keys = append(keys, prefix+words[rng.IntN(len(words))]+".jpg")
		}
		if depth == 3 {
			return
		}
		for range rng.IntN([]int{40, 12, 4}[depth]) {
			name := words[rng.IntN(len(words))]
			if rng.IntN(2) == 0 {
				name += fmt.Sprint(rng.IntN(300))
			}
			fill(prefix+name+"/", depth+1)
		}
	}
	fill("photos/", 0)
	return append(keys, "photos/x.jpg", "photos", "photosynthesis/1.jpg", "phot/2.jpg")[:len(keys)+2+rng.IntN(2)]
}

// A folder that is listed in parts has the names that pages in order have.
func TestListInParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	for range 25 {
		b := &lists{Memory: &membucket.Memory{Pages: 1 + rng.IntN(40)}}
		for _, key := range randomKeys(rng) {
			if key != "photos" {
				b.Put(key, []byte(key))
			}
		}
		want, err := listOf(t, b, "photos", true)
		require.NoError(t, err)
		got, err := listOf(t, b, "photos", false)
		if err != nil || !slices.Equal(describe(got), describe(want)) {
			t.Fatalf("%v; %d names, and %d in order", err, len(describe(got)), len(describe(want)))
		}
	}
}

// Names of a large folder take few requests, most at the same time.
func TestListTakesFewRequests(t *testing.T) {
	for name, c := range map[string]struct {
		key  func(i int) string
		most int64
	}{
		"class folders": {func(i int) string { return fmt.Sprintf("class-%04d/%02d.jpg", i/8, i%8) }, 18},
		"splits":        {func(i int) string { return fmt.Sprintf("%s/%03d/%02d.jpg", []string{"train", "val"}[i%2], i/16, i%16) }, 28},
		"few classes":   {func(i int) string { return fmt.Sprintf("%d/%05d.jpg", i%10, i) }, 18},
		"no classes":    {func(i int) string { return fmt.Sprintf("%05d.jpg", i) }, 14},
		"deep folders":  {func(i int) string { return strings.Join(strings.Split(fmt.Sprintf("%05o", i), ""), "/") + ".jpg" }, 150}, // which folders are looked into first is left to chance
	} {
		b := &lists{Memory: &membucket.Memory{}}
		for i := range 8000 {
			b.Put("photos/"+c.key(i), nil)
		}
		s, err := listOf(t, b, "photos", false)
		require.NoError(t, err)
		files := slices.DeleteFunc(describe(s), func(line string) bool { return !strings.Contains(line, ".jpgfalse") })
		if n := b.requests.Load(); n > c.most || len(files) != 8000 {
			t.Errorf("%s: %d requests, %d files", name, n, len(files))
		}
	}
}

// A small folder takes the time of one request: none waits for another.
func TestListOfSmallFolder(t *testing.T) {
	b := &lists{Memory: &membucket.Memory{}}
	for i := range 900 {
		b.Put(fmt.Sprintf("photos/%d/%d.jpg", i%20, i), nil)
	}
	end := time.Now().Add(time.Minute)
	b.refuse = func(string, string) error {
		for b.requests.Load() < 4 { // the folder as an object, an array's file, all names, and folders
			if time.Now().After(end) {
				return errors.New("a request waits for another one's answer")
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	if _, err := listOf(t, b, "photos", false); err != nil || b.requests.Load() != 4 {
		t.Errorf("%v; %d requests", err, b.requests.Load())
	}
}

// Objects, arrays and folders with a file that says so are not listed.
func TestListOfOthers(t *testing.T) {
	for _, key := range []string{"photos", "photos/zarr.json", "photos/.zgroup", "photos/manifest.json"} {
		b := &lists{Memory: &membucket.Memory{Pages: 10}}
		for i := range 100 {
			b.Put(fmt.Sprintf("photos/%03d.bin", i), nil)
		}
		b.Put(key, nil)
		f := New(t.Context(), requests.NewClient(b, remote.Policy{}), "")
		if err := f.List("photos", nil, "manifest.json"); !errors.Is(err, ErrOther) || f.listed.Load() != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	b := &lists{Memory: &membucket.Memory{}}
	b.Put("photos.tar", nil)
	if _, err := listOf(t, b, "photos.tar", false); !errors.Is(err, ErrOther) || b.requests.Load() != 1 {
		t.Errorf("%d requests: %v", b.requests.Load(), err)
	}
	if _, err := listOf(t, b, "nothing", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A store that lists whole folders alone, or without a delimiter alone, is listed in order. Other errors are reported.
func TestListOfStoresWithRules(t *testing.T) {
	down := errors.New("503")
	for _, kind := range []error{remote.ErrPermission, remote.ErrInvalid, down} {
		for rule, refused := range map[string]func(prefix, delimiter string) bool{
			"no parts of names": func(prefix, _ string) bool { return !strings.HasSuffix(prefix, "/") },
			"no delimiter":      func(_, delimiter string) bool { return delimiter != "" },
		} {
			b := &lists{Memory: &membucket.Memory{}}
			for i := range 2000 {
				b.Put(fmt.Sprintf("photos/class-%03d/%d.jpg", i/10, i%10), nil)
			}
			b.refuse = func(prefix, delimiter string) error {
				if refused(prefix, delimiter) {
					return remote.NewError("list", prefix, kind, nil)
				}
				return nil
			}
			if kind == down {
				b.refuse = func(prefix, delimiter string) error {
					if refused(prefix, delimiter) {
						return down
					}
					return nil
				}
			}
			s, err := listOf(t, b, "photos", false)
			if kind == down && !errors.Is(err, remote.ErrUnavailable) || kind != down && (err != nil || len(s.folders) != 201) {
				t.Errorf("%s, %v: %v", rule, kind, err)
			}
		}
	}
}

// Glob finds in a bucket, listed or not, the paths that it finds in a folder here.
func TestGlob(t *testing.T) {
	c, f := mounted(t)
	for _, name := range []string{"a[b/x.json", "a[b/1.json", "cat/1.json", "x*y"} {
		put(t, c, name, nil)
	}
	for range 2 {
		for _, pattern := range []string{"*", "*/*", "*/*.json", "*.json", "p*/*/1.jpg", "photos/*/[0-2].jpg", "photos/cat/2.jpg", "photos/?at/*",
			`a\[b/*`, "[ap]*", `x\*y`, "none/*", "none", "top.txt/*", "photos/none", "photos/[", ".", "*/1.json"} {
			got, failed := vfs.Glob("mem:/lab/" + pattern)
			want, err := fs.Glob(f, pattern)
			for i := range want {
				want[i] = "mem:/lab/" + want[i]
			}
			if pattern == "." {
				want = []string{"mem:/lab"}
			}
			if !slices.Equal(got, want) || fmt.Sprint(failed) != fmt.Sprint(err) {
				t.Errorf("%s: %q, %v; want %q, %v", pattern, got, failed, want, err)
			}
		}
		require.NoError(t, f.List(".", nil))
	}
	var walked []string
	err := vfs.WalkDir("mem:/lab", func(path string, e fs.DirEntry, err error) error {
		walked = append(walked, path)
		return err
	})
	if err != nil || walked[0] != "mem:/lab" || !slices.Contains(walked, "mem:/lab/photos/cat/1.jpg") {
		t.Errorf("%q, %v", walked, err)
	}
}
