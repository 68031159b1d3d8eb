package edit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// upload sends the files of a dataset.
func upload(t testing.TB, folder string, b *remote.Memory) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Put("ds/"+filepath.Base(f), data)
	}
}

// makeBucket returns a bucket with a dataset of pages and labels.
func makeBucket(t testing.TB) *remote.Memory {
	t.Helper()
	folder, b := filepath.Join(t.TempDir(), "ds"), new(remote.Memory)
	makeDataset(t, folder, false, pages, labels)
	upload(t, folder, b)
	return b
}

// keys returns the objects of a bucket.
func keys(t testing.TB, b *remote.Memory) (list []string) {
	t.Helper()
	p, err := b.ListPage(t.Context(), "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.Objects {
		list = append(list, strings.TrimPrefix(o.Key, "ds/"))
	}
	return list
}

// A change in a bucket makes the dataset that the same change makes in a folder, and writes nothing but its column and
// manifests.
func TestBucketIsAsAFolder(t *testing.T) {
	folder, b := filepath.Join(t.TempDir(), "ds"), new(remote.Memory)
	makeDataset(t, folder, false, pages, labels)
	upload(t, folder, b)
	old := keys(t, b)
	here, there := At(folder), InBucket(t.Context(), b, "ds", t.TempDir())
	words := []uint64{0b1010}
	for _, change := range []func(d *Dataset) (*store.Manifest, error){
		func(d *Dataset) (*store.Manifest, error) { return d.AddColumn(emb, valuesOf(emb, 1), Options{}) },
		func(d *Dataset) (*store.Manifest, error) { return d.AddColumn(tokens, valuesOf(tokens, 1), Options{}) },
		func(d *Dataset) (*store.Manifest, error) { return d.SetColumn(emb, valuesOf(emb, 2), Options{}) },
		func(d *Dataset) (*store.Manifest, error) { return d.RenameColumn("tokens", "words", Options{}) },
		func(d *Dataset) (*store.Manifest, error) { return d.Delete(Chosen{Words: words}, Options{}) },
		func(d *Dataset) (*store.Manifest, error) { return d.Undelete(Chosen{Words: words}, Options{}) },
		func(d *Dataset) (*store.Manifest, error) {
			chosen, err := d.Choose(0, []int64{4, 2})
			if err != nil {
				return nil, err
			}
			return d.Delete(chosen, Options{})
		},
		func(d *Dataset) (*store.Manifest, error) { return d.DropColumn([]string{"emb"}, Options{}) },
		func(d *Dataset) (*store.Manifest, error) { return d.Restore("2", Options{}) },
	} {
		want, err := change(here)
		if err != nil {
			t.Fatal(err)
		}
		got, err := change(there)
		if err != nil || got.ID != want.ID || got.Generation != want.Generation {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	for _, err := range []error{here.Tag("two", 2), there.Tag("two", 2)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := here.Log()
	if err != nil {
		t.Fatal(err)
	}
	got, err := there.Log()
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range got {
		if got[i].ID != want[i].ID || !slices.Equal(got[i].Columns, want[i].Columns) || !slices.Equal(got[i].Tags, want[i].Tags) || got[i].Time.IsZero() {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	now := keys(t, b)
	for _, name := range old {
		if !slices.Contains(now, name) {
			t.Errorf("%s is gone", name)
		}
	}
	if err := there.Tag("two", 2); !errors.Is(err, store.ErrExist) {
		t.Errorf("a tag was made again: %v", err)
	}
	if err := there.Tag("two", 1); !errors.Is(err, store.ErrExist) {
		t.Errorf("a tag was moved: %v", err)
	}
	if m, err := there.Manifest("two"); err != nil || m.Generation != 2 {
		t.Errorf("%v, %v", m, err)
	}
	if err := there.Untag("two"); err != nil {
		t.Error(err)
	}
	if err := there.Untag("two"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tag was removed twice: %v", err)
	}
}

// killed is a bucket whose process is killed at a request that writes: that is made or not, and none after it.
type killed struct {
	remote.Bucket
	kill context.CancelFunc // nil: only the answer to that request is lost
	mu   sync.Mutex
	left int  // requests until then
	made bool // the last one
}

var errLost = errors.New("the connection was reset")

// request makes a request that writes.
func (k *killed) request(do func() error) error {
	k.mu.Lock()
	k.left--
	left := k.left
	k.mu.Unlock()
	if left > -1 || left < -1 && k.kill == nil {
		return do()
	}
	if left == -1 && k.made {
		_ = do()
	}
	if k.kill == nil {
		return remote.NewError("write", "ds", nil, errLost)
	}
	k.kill()
	return context.Canceled
}

func (k *killed) Delete(ctx context.Context, key string) error {
	return k.request(func() error { return k.Bucket.Delete(ctx, key) })
}

func (k *killed) NewWriter(ctx context.Context, key string, opts remote.WriteOptions) (remote.Writer, error) {
	w, err := k.Bucket.NewWriter(ctx, key, opts)
	return &killedWriter{w, k}, err
}

type killedWriter struct {
	remote.Writer
	of *killed
}

func (w *killedWriter) Commit() error { return w.of.request(w.Writer.Commit) }

// A store that ignores the condition of a write does not keep writers apart. Zarr and files are refused, too.
func TestBucketsRefused(t *testing.T) {
	b := makeBucket(t)
	for want, d := range map[string]*Dataset{
		"writers cannot be kept apart": InBucket(t.Context(), careless{b}, "ds", t.TempDir()),
		"it is one file":               InBucket(t.Context(), b, "ds/manifest.json", t.TempDir()),
		"no manifest.json in it":       InBucket(t.Context(), b, "nothing", t.TempDir()),
	} {
		before := keys(t, b)
		_, err := d.AddColumn(emb, valuesOf(emb, 1), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, name := range keys(t, b) {
			if !slices.Contains(before, name) && name != "generations/00000001.json" {
				t.Errorf("%s: %s is left", want, name)
			}
		}
	}
}

// careless is a store that replaces objects whatever the condition.
type careless struct{ remote.Bucket }

func (c careless) NewWriter(ctx context.Context, key string, opts remote.WriteOptions) (remote.Writer, error) {
	opts.IfNotExist = false
	return c.Bucket.NewWriter(ctx, key, opts)
}

// Objects that were sent and not committed stay until they are old: they may be those of a column that is being written.
func TestPruneKeepsWhatIsYoung(t *testing.T) {
	b := makeBucket(t)
	d := InBucket(t.Context(), b, "ds", t.TempDir())
	prepared(t, d)
	b.Put("ds/emb-00000.01234567.npy", []byte("of a column that is being written"))
	day := 24 * time.Hour
	if p, err := d.Prune(PruneOptions{Within: day}); err != nil || p.Files > 0 || len(p.Generations) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	now := time.Now()
	b.Now = func() time.Time { return now.Add(-2 * day) }
	b.Put("ds/emb-00000.76543210.npy", []byte("of a process that was killed"))
	if p, err := d.Prune(PruneOptions{Within: day}); err != nil || p.Files != 1 || len(p.Generations) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	there := keys(t, b)
	if !slices.Contains(there, "emb-00000.01234567.npy") || slices.Contains(there, "emb-00000.76543210.npy") {
		t.Errorf("%q", there)
	}
}

// A generation that is tagged, or restored, while Prune has removed its manifest, stays.
func TestPruneTakesBack(t *testing.T) {
	for name, meanwhile := range map[string]func(b *remote.Memory){
		"tag":  func(b *remote.Memory) { b.Put("ds/generations/tags/best.json", []byte(`{"generation":2}`)) },
		"hold": func(b *remote.Memory) { b.Put("ds/generations/holds/1.json", []byte(`{"generation":2}`)) },
	} {
		b := makeBucket(t)
		before := prepared(t, InBucket(t.Context(), b, "ds", t.TempDir()))
		p, err := InBucket(t.Context(), &meeting{Bucket: b, meet: func() { meanwhile(b) }}, "ds", t.TempDir()).Prune(PruneOptions{})
		if err != nil || !slices.Equal(p.InUse, []int{2}) || !slices.Equal(p.Generations, []int{1}) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		checkKilled(t, InBucket(t.Context(), b, "ds", t.TempDir()), b, before, "prune", name)
	}
}

// meeting is a bucket in which something happens when the first object is removed.
type meeting struct {
	remote.Bucket
	meet func()
	once sync.Once
}

func (m *meeting) Delete(ctx context.Context, key string) error {
	m.once.Do(m.meet)
	return m.Bucket.Delete(ctx, key)
}

var bucketChanges = map[string]func(d *Dataset) error{
	"add":     func(d *Dataset) error { _, err := d.AddColumn(tokens, valuesOf(tokens, 1), Options{}); return err },
	"drop":    func(d *Dataset) error { _, err := d.DropColumn([]string{"emb"}, Options{}); return err },
	"restore": func(d *Dataset) error { _, err := d.Restore("2", Options{}); return err },
	"tag":     func(d *Dataset) error { return d.Tag("two", 2) },
	"prune":   func(d *Dataset) error { _, err := d.Prune(PruneOptions{Keep: []int{2}}); return err },
}

// A process that is killed at any request has made its change or not, and all generations keep their values.
func TestKilledAtEachRequest(t *testing.T) {
	for name, change := range bucketChanges {
		t.Run(name, func(t *testing.T) {
			for at := 0; ; at++ {
				ended := false
				for _, made := range []bool{false, true} {
					b := makeBucket(t)
					d := InBucket(t.Context(), b, "ds", t.TempDir())
					before := prepared(t, d)
					ctx, kill := context.WithCancel(t.Context())
					defer kill()
					k := &killed{Bucket: b, kill: kill, left: at, made: made}
					err := change(InBucket(ctx, k, "ds", t.TempDir()))
					ended = k.left >= 0
					checkKilled(t, d, b, before, name, fmt.Sprintf("killed at request %d (made: %v): %v", at, made, err))
					if err := change(d); err != nil && !errors.Is(err, store.ErrExist) && !strings.Contains(err.Error(), "no column") {
						t.Fatalf("killed at request %d (made: %v), and run again: %v", at, made, err)
					}
				}
				if ended {
					break
				}
			}
		})
	}
}

// A change whose request was made, and whose answer was lost, is made once.
func TestLostAnswers(t *testing.T) {
	for name, change := range bucketChanges {
		for at := 0; ; at++ {
			b := makeBucket(t)
			d := InBucket(t.Context(), b, "ds", t.TempDir())
			before := prepared(t, d)
			k := &killed{Bucket: b, left: at, made: true}
			if err := change(InBucket(t.Context(), k, "ds", t.TempDir())); err != nil {
				t.Fatalf("%s, request %d: %v", name, at, err)
			}
			checkKilled(t, d, b, before, name, fmt.Sprintf("%s, request %d", name, at))
			if k.left >= 0 {
				break
			}
		}
	}
}

// prepared makes generations 2 and 3, and returns the ids of all.
func prepared(t *testing.T, d *Dataset) map[int]string {
	t.Helper()
	for version := range 2 {
		put := d.AddColumn
		if version > 0 {
			put = d.SetColumn
		}
		if _, err := put(emb, valuesOf(emb, version), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return ids(t, d)
}

func ids(t *testing.T, d *Dataset) map[int]string {
	t.Helper()
	log, err := d.Log()
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[int]string)
	for _, e := range log {
		list[e.Generation] = e.ID
	}
	return list
}

// checkKilled looks at all that a generation lists.
func checkKilled(t *testing.T, d *Dataset, b *remote.Memory, before map[int]string, name, when string) {
	t.Helper()
	now := ids(t, d)
	for n, id := range before {
		if now[n] != id && !(name == "prune" && n == 1 && now[n] == "") {
			t.Fatalf("%s: generation %d is %q, and was %q", when, n, now[n], id)
		}
	}
	if len(now) > len(before)+1 {
		t.Fatalf("%s: %d generations", when, len(now))
	}
	there := keys(t, b)
	for n := range now {
		m, _, err := d.lists.Generation(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range m.Shards {
			for _, f := range s.Files {
				if !slices.Contains(there, f.Name) {
					t.Fatalf("%s: %s of generation %d is gone", when, f.Name, n)
				}
			}
		}
	}
}
