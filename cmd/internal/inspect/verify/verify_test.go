package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/datasettest"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
)

func verified(t *testing.T, path string) *Verification {
	t.Helper()
	v, err := Dataset(context.Background(), path, Options{Workers: 2})
	require.NoError(t, err)
	return v
}

func TestVerifyWhole(t *testing.T) {
	var expected, reported int64
	v, err := Dataset(context.Background(), datasettest.Animals(t), Options{
		Begin: func(n int64) { expected = n }, Progress: func(n int64) { reported += n },
	})
	require.NoError(t, err)
	if !v.Whole || v.Err() != nil || v.Bytes != 600*200 || v.Records != 600 || expected != v.Bytes || reported != v.Bytes {
		t.Errorf("%+v, announced %d, reported %d", v, expected, reported)
	}
}

// Wherever a byte of a payload file is wrong, in its header or its records, the corruption has
// the field, the shard and the record.
func TestVerifyNamesEveryFlippedByte(t *testing.T) {
	path := datasettest.Animals(t)
	per := map[string]int64{"images": layout.BlockRecords(192), "labels": layout.BlockRecords(8)}
	size := map[string]int64{"images": 192, "labels": 8}
	m, flips := readManifest(path), 0
	for shard, s := range m.Shards {
		for i := 0; i < len(s.Files); i += 2 {
			f := s.Files[i]
			for at := int64(7); at < f.Bytes; at += f.Bytes / 9 {
				file := filepath.Join(path, f.Name)
				datasettest.Rewrite(t, file, datasettest.Flip(int(at)))
				flips++
				v := verified(t, path)
				datasettest.Rewrite(t, file, datasettest.Flip(int(at)))
				if v.Whole || v.Err() == nil || len(v.Corruptions) != 1 {
					t.Fatalf("%s byte %d: %+v", f.Name, at, v.Corruptions)
				}
				d := v.Corruptions[0]
				first, last := s.First, s.First+s.Count-1
				if at >= layout.HeaderBytes {
					block := (at - layout.HeaderBytes) / size[f.Field] / per[f.Field]
					first = s.First + block*per[f.Field]
					last = min(last, first+per[f.Field]-1)
				}
				if d.Field != f.Field || d.Shard != shard || d.First != first || d.Last != last || d.File != f.Name || d.Offset > at {
					t.Errorf("%s byte %d: %v", f.Name, at, d)
				}
			}
		}
	}
	if flips < 4*9 {
		t.Errorf("only %d bytes were flipped", flips)
	}
	if v := verified(t, path); !v.Whole {
		t.Errorf("repaired: %+v", v)
	}
}

func TestVerifyGoesOnWithoutCorruptFiles(t *testing.T) {
	path := datasettest.Animals(t)
	datasettest.Rewrite(t, filepath.Join(path, "images-00000.npy"), func(b []byte) []byte { return b[:layout.HeaderBytes+192*100+5] })
	datasettest.Rewrite(t, filepath.Join(path, "images-00001.npy"), datasettest.Flip(layout.HeaderBytes))
	datasettest.Rewrite(t, filepath.Join(path, "labels-00000.npy"), func(b []byte) []byte { return append(b, 1, 2, 3) })
	datasettest.Rewrite(t, filepath.Join(path, "labels-00001.npy"), datasettest.Flip(layout.HeaderBytes+8))
	for _, name := range []string{"images-00000.crc.npy", "labels-00001.crc.npy"} {
		require.NoError(t, os.Remove(filepath.Join(path, name)))
	}
	var got []string
	v := verified(t, path)
	for _, d := range v.Corruptions {
		got = append(got, d.String())
	}
	want := []string{
		`field "images", shard 0, records 0 to 511: images-00000.crc.npy at byte 0: the file is missing`,
		`field "images", shard 0, records 100 to 511: images-00000.npy at byte 23301: the file ends here, cut short by 79099 of 102400 bytes`,
		`field "images", shard 1, records 512 to 599: images-00001.npy at byte 4096: CRC32C is `,
		`field "labels", shard 0, records 0 to 511: labels-00000.npy at byte 8192: the file should end here, but has 3 bytes more`,
		`field "labels", shard 1, records 512 to 599: labels-00001.crc.npy at byte 0: the file is missing`,
		`field "labels", shard 1, records 512 to 599: labels-00001.npy at byte 0: CRC32C of the file is `,
	}
	if len(got) != len(want) {
		t.Fatalf("%d corruptions, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

func TestVerifyTruncatedAnywhere(t *testing.T) {
	path := datasettest.Animals(t)
	file := filepath.Join(path, "images-00001.npy")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for n := 0; n < len(whole); n += 1000 {
		datasettest.Rewrite(t, file, func([]byte) []byte { return whole[:n] })
		if v := verified(t, path); v.Whole || v.Corruptions[0].File != "images-00001.npy" || v.Corruptions[0].Offset != int64(n) {
			t.Errorf("cut at %d: %+v", n, v.Corruptions)
		}
	}
}

func TestVerifyNotesUnknownFiles(t *testing.T) {
	path := datasettest.Animals(t)
	for _, name := range []string{"notes.txt", "state"} { // a mirror has its state there
		require.NoError(t, os.WriteFile(filepath.Join(path, name), nil, 0o666))
	}
	v := verified(t, path)
	if !v.Whole || len(v.Unknown) != 1 || v.Unknown[0] != "notes.txt" {
		t.Errorf("%+v", v)
	}
	var loud, quiet strings.Builder
	require.NoError(t, errors.Join(v.Render(&loud), v.RenderCorruptions(&quiet)))
	if !strings.Contains(loud.String(), "note: notes.txt is not a file of the dataset\n") || quiet.String() != "" {
		t.Errorf("loud %q, quiet %q", &loud, &quiet)
	}
}

func TestVerifyForeignHDF5SaysWhatItCannot(t *testing.T) {
	v := verified(t, datasettest.SmallHDF5("new-chunks"))
	if !v.Whole || v.Checksums != 0 || v.Chunks != 5 || len(v.Unchecked) != 2 {
		t.Errorf("%+v", v)
	}
	var b strings.Builder
	require.NoError(t, v.Render(&b))
	if !strings.Contains(b.String(), "not checked: /grow: it has no checksums") || !strings.Contains(b.String(), "its structure is sound") {
		t.Errorf("got\n%s", &b)
	}
}

// Verify checks chunks that h5py wrote by their filters' checksums: it reports a flipped bit with its
// place, once per row of chunks, and still checks the rest.
func TestVerifyForeignChunks(t *testing.T) {
	path := h5test.File(t, `
    a = np.arange(4000).reshape(50, 80) % 251
    f.create_dataset("gzip", data=a.astype("u1"), chunks=(10, 80), compression="gzip")
    f.create_dataset("sum", data=a.astype("i4"), chunks=(10, 40), fletcher32=True)
    f.create_dataset("lzf", data=a.astype("i4"), chunks=(10, 40), compression="lzf")
    f.create_dataset("sparse", (10**12, 4), "i4", chunks=(10, 4), compression="gzip")[5 * 10**11] = 7
    f["same"] = f["gzip"]
`)
	v := verified(t, path)
	if !v.Whole || v.Chunks != 5+10+1 || !slices.Equal(v.Unchecked, []string{"/lzf: it has no checksums"}) {
		t.Fatalf("%+v", v)
	}
	var b strings.Builder
	if err := v.Render(&b); err != nil || !strings.Contains(b.String(), "its structure is sound; 16 chunks match the checksums of their filters\n") {
		t.Errorf("error %v\n%s", err, &b)
	}
	at := chunkOffsets(t, path)
	datasettest.Rewrite(t, path, func(b []byte) []byte {
		b[at["gzip"][3]+9] ^= 1
		b[at["sum"][0]+5] ^= 1
		b[at["sum"][1]+5] ^= 1
		b[at["sum"][9]+5] ^= 1
		return b
	})
	v = verified(t, path)
	var got []string
	for _, d := range v.Corruptions {
		got = append(got, fmt.Sprintf("%s %d-%d %v", d.Field, d.First, d.Last, d.Offset == at[d.Field][map[int64]int{0: 0, 30: 3, 40: 9}[d.First]]))
		if !strings.Contains(d.Problem, "chunk [") || strings.HasSuffix(d.Problem, "corrupt") {
			t.Errorf("problem %q", d.Problem)
		}
	}
	if want := []string{"gzip 30-39 true", "sum 0-9 true", "sum 40-49 true"}; !slices.Equal(got, want) || v.Whole || v.Err() == nil {
		t.Errorf("corruptions %q, want %q", got, want)
	}
}

// chunkOffsets returns where the chunks of the datasets of an HDF5 file are.
func chunkOffsets(t *testing.T, path string) map[string][]int64 {
	t.Helper()
	p, err := dataset.Open(path)
	require.NoError(t, err)
	defer p.Close()
	at := make(map[string][]int64)
	for _, d := range p.Meta.Datasets() {
		if d.Layout.Kind != meta.Chunked {
			continue
		}
		table, err := d.Chunks()
		require.NoError(t, err)
		for _, c := range table.Chunks {
			at[d.Path[1:]] = append(at[d.Path[1:]], c.Offset)
		}
	}
	return at
}

// Verify reports a corrupt index, too.
func TestVerifyForeignIndex(t *testing.T) {
	data, err := os.ReadFile(datasettest.SmallHDF5("new-chunks"))
	require.NoError(t, err)
	data[463+20] ^= 1 // of the fixed array
	path := filepath.Join(t.TempDir(), "x.h5")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	if v := verified(t, path); len(v.Corruptions) != 1 || v.Corruptions[0].Field != "fixed" || v.Corruptions[0].Offset != 463 || len(v.Unchecked) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestVerifyWithoutManifest(t *testing.T) {
	path := datasettest.Animals(t)
	datasettest.Rewrite(t, filepath.Join(path, layout.ManifestName), func(b []byte) []byte { return b[:len(b)/2] })
	if _, err := Dataset(context.Background(), path, Options{}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

func TestVerifyStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	cancel(stop)
	whole, broken := datasettest.Animals(t), datasettest.Animals(t)
	datasettest.Rewrite(t, filepath.Join(broken, "images-00000.npy"), datasettest.Flip(0))
	for _, path := range []string{whole, broken} {
		if _, err := Dataset(ctx, path, Options{}); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	}
}
