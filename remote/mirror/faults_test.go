package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// faulty is a bucket where a share of all reads fails in one of many ways.
type faulty struct {
	remote.Bucket
	part float64

	mu     sync.Mutex
	random *rand.Rand
	faults map[string]int
	struck map[string]int // faults of reads up to one end, and of those with a wrong byte
}

// Faults of one read with all that repeat it, or its rest: fewer than end it for good.
const (
	mostFaults = 4
	mostFlips  = tries - 1
)

// pick returns the fault of a read of key that ends there.
func (f *faulty) pick(key string, end int64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.Float64() >= f.part {
		return ""
	}
	kinds := []string{"503", "reset", "truncated", "slow", "flipped"}
	kind := kinds[f.random.IntN(len(kinds))]
	read := fmt.Sprint(key, " ", end)
	flips := read + " flipped"
	if f.struck[read] == mostFaults || kind == "flipped" && f.struck[flips] == mostFlips {
		return ""
	}
	f.struck[read]++
	if kind == "flipped" {
		f.struck[flips]++
	}
	f.faults[kind]++
	return kind
}

func (f *faulty) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	kind := f.pick(key, off+n)
	if kind == "503" {
		return remote.Body{}, remote.NewError("read", key, nil, errors.New("503 Slow Down"))
	}
	b, err := f.Bucket.ReadRange(ctx, key, off, n, etag)
	if err != nil || kind == "" {
		return b, err
	}
	data, err := io.ReadAll(b)
	half := data[:len(data)/2]
	switch kind {
	case "reset":
		b.ReadCloser = io.NopCloser(io.MultiReader(bytes.NewReader(half), failing{}))
	case "truncated":
		b.ReadCloser = io.NopCloser(bytes.NewReader(half))
	case "slow":
		b.ReadCloser = io.NopCloser(&slow{ctx, bytes.NewReader(data)})
	case "flipped":
		data = bytes.Clone(data)
		if strings.HasSuffix(key, ".npy") && len(data) > 0 {
			data[len(data)/2] ^= 1
		}
		b.ReadCloser = io.NopCloser(bytes.NewReader(data))
	}
	return b, err
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// slow gives half of what it has, and then nothing until it is given up.
type slow struct {
	ctx context.Context
	r   *bytes.Reader
}

func (s *slow) Read(p []byte) (int, error) {
	if s.r.Len() <= int(s.r.Size())/2 {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	return s.r.Read(p[:min(len(p), 1000)])
}

// The clock stands still while anything computes: only the faults make something stall.
func TestFaultsLoseNothing(t *testing.T) {
	b, local := pair(t, 3000)
	opts := loader.Options{BatchSize: 50, Sampler: sampler.Shuffle{}, Seed: 4, Workers: 2}
	want := epoch(t, local, opts, 0)
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Bucket: b, part: 0.2, random: rand.New(rand.NewPCG(1, 2)), faults: make(map[string]int), struck: make(map[string]int)} // more than ever was
		d := open(t, f, "ds", Options{requestBytes: 64 << 10})
		if !bytes.Equal(epoch(t, d, opts, 0), want) {
			t.Error("other bytes than from the local dataset")
		}
		st := d.Stats()
		t.Logf("%v; %+v", f.faults, st)
		if len(f.faults) != 5 || st.Retries == 0 {
			t.Errorf("not all faults came: %v, %d retries", f.faults, st.Retries)
		}
		if st.Fetched != local.Files().Bytes() {
			t.Errorf("%d bytes were taken for a dataset of %d", st.Fetched, local.Files().Bytes())
		}
	})
}

func TestGoneServerIsSaid(t *testing.T) {
	b, _ := pair(t, 100)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, gone{b}, "ds", Options{})
		err := d.Gather(t.Context(), "images", []int{3}, make([]byte, 4900))
		if !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), "images-00000") {
			t.Errorf("%v", err)
		}
	})
}

// gone answers reads of the manifest, and no others.
type gone struct{ remote.Bucket }

func (g gone) ReadRange(ctx context.Context, key string, off, n int64, etag string) (remote.Body, error) {
	if strings.HasSuffix(key, ".json") {
		return g.Bucket.ReadRange(ctx, key, off, n, etag)
	}
	return remote.Body{}, remote.NewError("read", key, nil, errors.New("connection refused"))
}

func TestPoisonedMirrorIsRepaired(t *testing.T) {
	b, local := pair(t, 500)
	cache := filepath.Join(t.TempDir(), "cache")
	opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}}
	want := epoch(t, local, opts, 0)
	d := open(t, b, "ds", Options{CacheDir: cache})
	epoch(t, d, opts, 0)
	d.Close()
	for _, name := range []string{"images-00000.npy", "tokens.offsets-00000.npy", "images-00000.crc.npy"} {
		path := filepath.Join(d.Dir(), name)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		data[5000%len(data)] ^= 0x40
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	again := open(t, b, "ds", Options{CacheDir: cache})
	if !bytes.Equal(epoch(t, again, opts, 0), want) {
		t.Error("a poisoned mirror gave its poison")
	}
	if st := again.Stats(); st.Poisoned == 0 || st.Fetched == 0 || st.Fetched > local.Files().Bytes()/4 {
		t.Errorf("%+v", st)
	}
	again.Close()
	third := open(t, b, "ds", Options{CacheDir: cache})
	if epoch(t, third, opts, 0); third.Stats().Fetched != 0 {
		t.Errorf("repaired blocks are fetched again: %+v", third.Stats())
	}
}

func TestSmallCacheKeepsItsBound(t *testing.T) {
	b, local := pair(t, 4000) // 23 MB of images and small ones
	const bound = 12 << 20
	d := open(t, b, "ds", Options{CacheBytes: bound})
	opts := loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Workers: 2}
	for n := range 2 {
		if !bytes.Equal(epoch(t, local, opts, n), epoch(t, d, opts, n)) {
			t.Fatal("other bytes than from the local dataset")
		}
		if used := folderBytes(d.Dir()); used > bound+bound/8 {
			t.Errorf("the mirror has %d bytes, more than %d", used, bound)
		}
	}
	if st := d.Stats(); st.Evicted == 0 {
		t.Errorf("nothing was taken out: %+v", st)
	}
}

// A cache that has room for nothing holds what it needs in memory.
func TestNoRoomAtAll(t *testing.T) {
	b, local := pair(t, 1000)
	d := open(t, b, "ds", Options{CacheBytes: 1, memoryBytes: 1 << 20})
	opts := loader.Options{BatchSize: 32, Sampler: sampler.Shuffle{}, Workers: 2}
	if !bytes.Equal(epoch(t, local, opts, 0), epoch(t, d, opts, 0)) {
		t.Error("other bytes than from the local dataset")
	}
	if st := d.Stats(); st.Streaming == "" || st.Held == 0 {
		t.Errorf("it does not say so: %+v", st)
	}
}

func TestIdleMirrorsGoFirst(t *testing.T) {
	b := new(membucket.Memory)
	upload(t, build(t, 700), b, "a")
	upload(t, build(t, 710), b, "b")
	cache := filepath.Join(t.TempDir(), "cache")
	opts := loader.Options{BatchSize: 32, Sampler: sampler.Sequential{}}
	const bound = 6 << 20 // for one of them
	first := open(t, b, "a", Options{CacheDir: cache, CacheBytes: bound})
	epoch(t, first, opts, 0)
	first.Close()
	second := open(t, b, "b", Options{CacheDir: cache, CacheBytes: bound})
	epoch(t, second, opts, 0)
	if _, err := os.Stat(first.Dir()); !os.IsNotExist(err) {
		t.Errorf("the first mirror is still there: %v", err)
	}
	if st := second.Stats(); st.Streaming != "" || !second.Complete() {
		t.Errorf("%+v", st)
	}
}

func TestHostileManifests(t *testing.T) {
	dir := build(t, 50)
	good, err := os.ReadFile(filepath.Join(dir, layout.ManifestName))
	require.NoError(t, err)
	m, err := store.DecodeManifest(good)
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "outside")
	for name, change := range map[string]func(m *store.Manifest){
		"parent":       func(m *store.Manifest) { m.Shards[0].Files[0].Name = "../../outside" },
		"absolute":     func(m *store.Manifest) { m.Shards[0].Files[0].Name = outside },
		"NUL":          func(m *store.Manifest) { m.Shards[0].Files[0].Name = "images-00000.npy\x00x" },
		"long":         func(m *store.Manifest) { m.Shards[0].Files[0].Name = strings.Repeat("a", 1<<16) },
		"field":        func(m *store.Manifest) { m.Fields[0].Name = "../x" },
		"many records": func(m *store.Manifest) { m.Records = 1 << 50 },
		"long shard":   func(m *store.Manifest) { m.Records, m.Shards[0].Count = 1<<40, 1<<40 },
		"large record": func(m *store.Manifest) { m.Fields[0].Shape = []int{1 << 30, 1 << 30} },
		"large file":   func(m *store.Manifest) { m.Shards[0].Files[0].Bytes = 1 << 60 },
		"negative":     func(m *store.Manifest) { m.Shards[0].Files[0].Bytes = -1 },
		"no files":     func(m *store.Manifest) { m.Shards[0].Files = nil },
		"no shards":    func(m *store.Manifest) { m.Shards = nil },
		"negative ragged rows": func(m *store.Manifest) {
			for i := range m.Shards[0].Files {
				m.Shards[0].Files[i].Rows = -5
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var bad store.Manifest
			clone, err := m.Encode()
			require.NoError(t, err)
			decoded, err := store.DecodeManifest(clone)
			require.NoError(t, err)
			bad = *decoded
			change(&bad)
			text, err := bad.Encode()
			require.NoError(t, err)
			b := new(membucket.Memory)
			upload(t, dir, b, "ds")
			b.Put("ds/"+layout.ManifestName, text)
			d, err := Open(t.Context(), b, "ds", Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
			if err == nil {
				d.Close()
				t.Error("it was opened")
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Error("a file was created outside of the cache")
			}
		})
	}
}

// Objects that are not what a true manifest says are refused when they are read.
func TestObjectsThatAreNotWhatTheManifestSays(t *testing.T) {
	dir := build(t, 50)
	for name, change := range map[string]func(data []byte) []byte{
		"short":   func(data []byte) []byte { return data[:5000] },
		"flipped": func(data []byte) []byte { data[6000] ^= 1; return data },
	} {
		t.Run(name, func(t *testing.T) {
			b := new(membucket.Memory)
			upload(t, dir, b, "ds")
			data, err := os.ReadFile(filepath.Join(dir, "images-00000.npy"))
			require.NoError(t, err)
			b.Put("ds/images-00000.npy", change(data))
			synctest.Test(t, func(t *testing.T) {
				d := open(t, b, "ds", Options{})
				err := d.Gather(t.Context(), "images", []int{0, 1, 2}, make([]byte, 3*4900))
				if !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestCacheThatOthersWriteTo(t *testing.T) {
	b := new(membucket.Memory)
	upload(t, build(t, 10), b, "ds")
	cache := t.TempDir()
	require.NoError(t, os.Chmod(cache, 0o777))
	if d, err := Open(t.Context(), b, "ds", Options{CacheDir: cache}); err == nil {
		d.Close()
		t.Error("it was taken")
	}
}
