package mmapds_test

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/hdf5"
	"github.com/penstock/penstock/store/verify"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

// inside and outside fill the records of a dataset, and of a twin whose files have the same names and sizes.
const inside, outside = 0x11, 0xEE

// strangers write a dataset of one value, in each of the containers.
var strangers = map[string]func(t testing.TB, dir string, value byte){
	"flat": func(t testing.TB, dir string, value byte) {
		writeStranger(t, value, func(s store.Schema) (store.Writer, error) { return flat.Create(dir, s, flat.Options{ShardBytes: 40}) })
	},
	"zarr": func(t testing.TB, dir string, value byte) {
		writeStranger(t, value, func(s store.Schema) (store.Writer, error) { return zarr.Create(dir, s, zarr.Options{ShardBytes: 40}) })
	},
	"zarr compressed": func(t testing.TB, dir string, value byte) {
		writeStranger(t, value, func(s store.Schema) (store.Writer, error) {
			return zarr.Create(dir, s, zarr.Options{Compress: &zarr.Compression{}})
		})
	},
	"zarr of other programs": func(t testing.TB, dir string, value byte) {
		writeStranger(t, value, func(s store.Schema) (store.Writer, error) { return zarr.Create(dir, s, zarr.Options{}) })
		group := []byte(`{"zarr_format": 3, "node_type": "group"}`)
		require.NoError(t, errors.Join(os.RemoveAll(filepath.Join(dir, "penstock")), os.Remove(filepath.Join(dir, "zarr.json")),
			os.WriteFile(filepath.Join(dir, "zarr.json"), group, 0o666)))
	},
	"hdf5": func(t testing.TB, dir string, value byte) {
		writeStranger(t, value, func(s store.Schema) (store.Writer, error) {
			return hdf5.Create(filepath.Join(dir, "ds.h5"), s, hdf5.Options{})
		})
	},
}

// strangersFiles are the files of strangers that were written, by kind.
var strangersFiles = map[bool]map[string]map[string]string{false: {}, true: {}}

func writeStranger(t testing.TB, value byte, create func(store.Schema) (store.Writer, error)) {
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 8)}}
	w, err := create(schema)
	require.NoError(t, err)
	datasettest.Write(t, w, schema, 10, store.Info{}, func(_ int, r *store.Record) {
		copy(r.Values[0], bytes.Repeat([]byte{value}, 8))
	})
}

// strangersTwins makes a dataset in a folder, and its twin outside of it, and returns their folders and what the first
// one has. path is how the first is opened.
func strangersTwins(t testing.TB, kind string) (path, dir, out string, names []string) {
	top := t.TempDir()
	dir, out = filepath.Join(top, "in", "ds"), filepath.Join(top, "out", "ds")
	for at, value := range map[string]byte{dir: inside, out: outside} {
		made, ok := strangersFiles[at == out][kind]
		if !ok { // to write a dataset waits for the disk
			written := filepath.Join(t.TempDir(), "ds")
			strangers[kind](t, written, value)
			made = foldertest.Files(t, written)
			strangersFiles[at == out][kind] = made
		}
		foldertest.Write(t, at, made)
	}
	names = slices.Sorted(maps.Keys(strangersFiles[false][kind]))
	if path = dir; kind == "hdf5" {
		path = filepath.Join(dir, "ds.h5")
	}
	return path, dir, out, names
}

// readStranger reads all of a dataset in each way. It reports whether all of it was read, and whether a byte of it is
// the twin's.
func readStranger(t *testing.T, path string) (all, foreign bool, failed error) {
	t.Helper()
	type answer struct {
		foreign bool
		failed  error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		for _, mode := range []mmapds.ReadMode{mmapds.ReadMapped, mmapds.ReadPread, mmapds.ReadDirect} {
			ds, err := mmapds.Open(path, mmapds.WithVerify(mmapds.VerifyOff), mmapds.WithRead(mode))
			if err != nil {
				a.failed = err
				break
			}
			b := make([]byte, 80)
			err = ds.Gather(t.Context(), "x", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, b)
			a.foreign = a.foreign || bytes.IndexByte(b, outside) >= 0
			if a.failed = errors.Join(a.failed, err, ds.Close()); err != nil {
				break
			}
		}
		if d, err := store.Open(path, store.OpenOptions{Packed: true}); err == nil && d.Manifest != nil {
			_, err := verify.Dataset(t.Context(), d, verify.Options{})
			a.failed = errors.Join(a.failed, err)
		}
		done <- a
	}()
	select {
	case a := <-done:
		return a.failed == nil, a.foreign, a.failed
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: reading does not end", path)
		return
	}
}

// Whatever is in the place of a file of a finished dataset, also while it is opened and read: no byte comes from outside
// of its folder, and nothing waits.
func TestStrangersDatasets(t *testing.T) {
	for kind := range strangers {
		t.Run(kind, func(t *testing.T) {
			path, _, _, names := strangersTwins(t, kind)
			if all, foreign, err := readStranger(t, path); !all || foreign {
				t.Fatalf("as it is: %v, %v", foreign, err)
			}
			for _, name := range names {
				for _, how := range foldertest.StrangeWays {
					path, dir, out, _ := strangersTwins(t, kind)
					at := filepath.Join(dir, name)
					if at == path && (strings.Contains(how, "link") || how == "swap") {
						continue // what the user names: its links are followed
					}
					if how == "swap" {
						link := filepath.Join(filepath.Dir(dir), "link")
						require.NoError(t, os.Symlink(filepath.Join(out, name), link))
						stop := foldertest.Exchange(t, at, link, rand.Uint64())
						for range 5 {
							if _, foreign, _ := readStranger(t, path); foreign {
								t.Errorf("%s is exchanged for a link: the records are the link's", name)
								break
							}
						}
						stop()
						continue
					}
					if !foldertest.Strange(t, how, at, filepath.Join(out, name)) {
						continue
					}
					if _, foreign, err := readStranger(t, path); foreign {
						t.Errorf("a %s in the place of %s: records are from outside, %v", how, name, err)
					}
				}
			}
		})
	}
}

// Links that stay in the folder of a dataset are followed, and the folder may be a link itself. So are links to the blobs
// of the repository in the cache of the Hugging Face Hub.
func TestLinksInDatasets(t *testing.T) {
	for kind := range strangers {
		path, dir, _, names := strangersTwins(t, kind)
		top := filepath.Dir(dir)
		hub := filepath.Join(top, "datasets--org--name")
		for i, name := range names {
			kept, absolute := filepath.Join(dir, "kept", name), i%2 == 0
			blob := filepath.Join(hub, "blobs", strings.ReplaceAll(name, "/", "%"))
			link, inHub := filepath.Join(dir, name), filepath.Join(hub, "snapshots", "0123abcd", name)
			data, err := os.ReadFile(link)
			to, relErr := filepath.Rel(filepath.Dir(link), kept)
			blobTo, hubErr := filepath.Rel(filepath.Dir(inHub), blob)
			if absolute {
				to = kept
			}
			err = errors.Join(err, relErr, hubErr, os.MkdirAll(filepath.Dir(kept), 0o777), os.MkdirAll(filepath.Dir(blob), 0o777),
				os.MkdirAll(filepath.Dir(inHub), 0o777), os.Rename(link, kept), os.Symlink(to, link),
				os.WriteFile(blob, data, 0o666), os.Symlink(blobTo, inHub))
			require.NoError(t, err)
		}
		named := filepath.Join(top, "named")
		require.NoError(t, os.Symlink(dir, named))
		rel, _ := filepath.Rel(dir, path)
		for _, path := range []string{path, filepath.Join(named, rel), filepath.Join(hub, "snapshots", "0123abcd", rel)} {
			if all, foreign, err := readStranger(t, path); !all || foreign {
				t.Errorf("%s, %s: %v", kind, path, err)
			}
		}
		t.Chdir(dir)
		if all, _, err := readStranger(t, rel); !all {
			t.Errorf("%s, in its folder: %v", kind, err)
		}
		err := os.Rename(filepath.Join(hub, "blobs"), filepath.Join(hub, "others")) // then it is no cache
		if err == nil {
			err = os.Symlink("others", filepath.Join(hub, "blobs"))
		}
		require.NoError(t, err)
		if all, _, _ := readStranger(t, filepath.Join(hub, "snapshots", "0123abcd", rel)); all != (kind == "hdf5") {
			t.Errorf("%s: links out of a folder that is no cache of the Hub: %v", kind, all)
		}
	}
}
