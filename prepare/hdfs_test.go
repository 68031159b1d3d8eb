//go:build !nocloud

package prepare

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/hdfscluster"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

// On a real HDFS of a namenode and two datanodes: a dataset is built, and one is made by two ranks and merged; then a network trains
// from it. One datanode is killed while the first is built, and one in the middle of an epoch. All bytes are those of a local dataset.
func TestHDFS(t *testing.T) {
	cluster := hdfscluster.Start(t, 2)
	dir := t.TempDir()
	data := npyFile(4000, 96*96)
	rawtest.Put(t, dir, "x.npy", data)
	c := config(t, filepath.Join(dir, "x.npy"))
	c.Images.Resize, c.Images.Crop, c.ShardBytes = nil, nil, 2<<20
	mustRun(t, c)
	local := c.Dest

	bucket, _, err := cloud.Open(t.Context(), cluster.URL("lab"))
	require.NoError(t, err)
	defer bucket.Close()
	c.Dest, c.Spool, c.Checkpoint = cluster.URL("lab/built"), t.TempDir(), time.Millisecond
	var kill sync.Once
	progress := &warned{Silent: rawtest.Silent{F: func(done int64) {
		if done > 1000 {
			kill.Do(func() { cluster.Kill(0) })
		}
	}}}
	if _, err := Run(t.Context(), c, progress); err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d writes were repeated", progress.count.Load()); progress.count.Load() == 0 {
		t.Error("no write was repeated")
	}
	checkSame(t, filepath.Join(fetchBucket(t, bucket, "lab/built/"), "lab/built"), local)

	cluster.Restart(t, 0)
	c.Dest, c.Checkpoint = cluster.URL("lab/merged"), 0
	for rank := range 2 {
		c.Rank = part.Rank{Index: rank, Size: 2}
		mustRun(t, c)
	}
	if _, err := Merge(t.Context(), MergeConfig{Dest: c.Dest, Spool: c.Spool, Workers: 2, RemoveParts: true}, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	checkSame(t, filepath.Join(fetchBucket(t, bucket, "lab/merged/"), "lab/merged"), local)
	for o, err := range requests.NewClient(bucket, remote.Policy{}).List(t.Context(), "lab/", "/") {
		if err != nil || o.Key != "lab/built/" && o.Key != "lab/merged/" {
			t.Errorf("%s is left, %v", o.Key, err)
		}
	}

	want, err := mmapds.Open(local)
	require.NoError(t, err)
	defer want.Close()
	far, u, err := cloud.Open(t.Context(), c.Dest)
	require.NoError(t, err)
	// The cache has no room for all 36 MB, so that records have to be fetched after the datanode has ended.
	got, err := mirror.Open(t.Context(), far, u.Key, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), CacheBytes: 24 << 20})
	require.NoError(t, err)
	defer got.Close()
	a := epochOf(t, want, func(int) {})
	b := epochOf(t, got, func(step int) {
		if step == 20 {
			cluster.Kill(1)
		}
	})
	if !bytes.Equal(a, b) {
		t.Errorf("an epoch has other bytes than a local one: %d and %d", len(b), len(a))
	}
	t.Logf("%+v", got.Stats())
}

// warned counts the requests that are repeated.
type warned struct {
	rawtest.Silent
	count atomic.Int64
}

func (w *warned) Warn(string) { w.count.Add(1) }

// epochOf returns the bytes of a shuffled epoch.
func epochOf(t *testing.T, src loader.Source, each func(step int)) []byte {
	t.Helper()
	ld, err := loader.New(src, loader.Options{BatchSize: 64, Sampler: sampler.Shuffle{}, Seed: 7, Prefetch: 2, Workers: 2})
	require.NoError(t, err)
	defer ld.Close()
	var out bytes.Buffer
	step := 0
	for b, err := range ld.Epoch(context.Background(), 0) {
		require.NoError(t, err)
		for _, s := range ld.Specs() {
			out.Write(b.Field(s.Name).Bytes())
		}
		step++
		each(step)
	}
	return out.Bytes()
}

// npyFile returns an array of n different records of bytes.
func npyFile(n, size int) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d), }", n, size)
	header += fmt.Sprintf("%*s\n", 117-len(header), "")
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for i := range n {
		x := uint32(i)*2654435761 + 1
		for range size {
			x = x*1664525 + 1013904223
			out = append(out, byte(x>>24))
		}
	}
	return out
}
