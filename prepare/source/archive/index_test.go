package archive

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/testkit/membucket"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/vfs/bucketfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
)

var mutations = flag.Int("mutations", 1000, "how many corrupt indexes TestMutatedIndex reads")

// shardOf returns an archive of one text.
func shardOf(t *testing.T, name string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o666, Size: 1}))
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// An index in a bucket names shards next to it, by paths or by URLs of the bucket.
func TestIndexInBucket(t *testing.T) {
	c := requests.NewClient(&membucket.Memory{Name: "mem://lab", Pages: 3}, remote.Policy{})
	for key, data := range map[string][]byte{
		"set/train-1.tar": shardOf(t, "a.txt"), "set/val-1.tar": shardOf(t, "b.txt"), "set/more/train-2.tar": shardOf(t, "c.txt"), "other/x.tar": shardOf(t, "d.txt"),
		"set/index.json": []byte(`{"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": [{"url": "s3://lab/set/more/train-2.tar", "nsamples": 1},
			{"url": "val-1.tar", "nsamples": 1}, {"url": "train-1.tar", "nsamples": 1}]}`),
		"set/out.json": []byte(`{"wids_version": 1, "shardlist": [{"url": "s3://lab/other/x.tar", "nsamples": 1}]}`),
	} {
		require.NoError(t, c.WriteAll(t.Context(), key, data, remote.WriteOptions{}))
	}
	t.Cleanup(vfs.Mount("s3:/lab", bucketfs.New(t.Context(), c, "")))
	if kind, err := source.Detect("s3:/lab/set/index.json"); kind != "tar" || err != nil {
		t.Errorf("is of kind %q, %v", kind, err)
	}
	opts := source.Options{Seen: func(int64) {}}
	s, err := Open(t.Context(), rootOf(t, "s3:/lab/set/index.json"), "s3:/lab/set/index.json", opts, nil)
	require.NoError(t, err)
	defer s.Close()
	var got []string
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		got = append(got, sample.Split+" "+filepath.Base(sample.Name))
	}
	if want := []string{"train c", "val b", "train a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := Open(t.Context(), rootOf(t, "s3:/lab/set/out.json"), "s3:/lab/set/out.json", opts, nil); err == nil || !strings.Contains(err.Error(), "--outside") {
		t.Errorf("error %v", err)
	}
}

// Whatever an index says, it names files of its folder, or is an error.
func TestMutatedIndex(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.tar", i)), shardOf(t, "a.txt"), 0o600))
	}
	good := []byte(`{"wids_version": 1, "shardlist": [{"url": "0.tar", "nsamples": 1}], "datasets": [{"shardlist": [{"url": "1.tar", "nsamples": 1}, {"url": "./2.tar", "nsamples": 1}]}]}`)
	name, rnd, read := filepath.Join(dir, "index.json"), rand.New(rand.NewPCG(1, 2)), 0
	for range *mutations {
		text := slices.Clone(good)
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(text))
			switch rnd.IntN(3) {
			case 0:
				text[at] = byte(rnd.Uint32())
			case 1:
				text[at] = good[rnd.IntN(len(good))]
			default:
				text = slices.Concat(text[:at], good[rnd.IntN(len(good)):], text[at:])
			}
		}
		require.NoError(t, os.WriteFile(name, text, 0o600))
		files, err := readIndex(rootOf(t, name), name, make(map[string]int64))
		for _, f := range files {
			if filepath.Dir(f) != dir || !strings.HasSuffix(f, ".tar") && f != name {
				t.Fatalf("%s: names %s", text, f)
			}
		}
		if err == nil {
			read++
		}
	}
	if read == 0 {
		t.Error("no index was read")
	}
}

// rootOf opens the files of the source at path.
func rootOf(t testing.TB, path string) *vfs.Root {
	t.Helper()
	root, err := source.OpenRoot(path, source.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}
