package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/store"
)

func verify(t *testing.T, path string) *Verification {
	t.Helper()
	v, err := Verify(context.Background(), path, VerifyOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifyWhole(t *testing.T) {
	var expected, told int64
	v, err := Verify(context.Background(), animals(t), VerifyOptions{
		Begin: func(n int64) { expected = n }, Progress: func(n int64) { told += n },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !v.Whole || v.Err() != nil || v.Bytes != 600*200 || v.Records != 600 || expected != v.Bytes || told != v.Bytes {
		t.Errorf("%+v, announced %d, told %d", v, expected, told)
	}
}

// Wherever a byte of a payload file is wrong, in its header or its records, the damage has
// the field, the shard and the record.
func TestVerifyNamesEveryFlippedByte(t *testing.T) {
	path := animals(t)
	per := map[string]int64{"images": store.BlockRecords(192), "labels": store.BlockRecords(8)}
	size := map[string]int64{"images": 192, "labels": 8}
	m := readManifest(path)
	for shard, s := range m.Shards {
		for i := 0; i < len(s.Files); i += 2 {
			f := s.Files[i]
			for at := int64(7); at < f.Bytes; at += f.Bytes / 9 {
				file := filepath.Join(path, f.Name)
				rewrite(t, file, flip(int(at)))
				v := verify(t, path)
				rewrite(t, file, flip(int(at)))
				if v.Whole || v.Err() == nil || len(v.Damages) != 1 {
					t.Fatalf("%s byte %d: %+v", f.Name, at, v.Damages)
				}
				d := v.Damages[0]
				first, last := s.First, s.First+s.Count-1
				if at >= store.HeaderBytes {
					block := (at - store.HeaderBytes) / size[f.Field] / per[f.Field]
					first = s.First + block*per[f.Field]
					last = min(last, first+per[f.Field]-1)
				}
				if d.Field != f.Field || d.Shard != shard || d.First != first || d.Last != last || d.File != f.Name || d.Offset > at {
					t.Errorf("%s byte %d: %v", f.Name, at, d)
				}
			}
		}
	}
	if v := verify(t, path); !v.Whole {
		t.Errorf("mended again: %+v", v)
	}
}

func TestVerifyGoesOnWithoutDamagedFiles(t *testing.T) {
	path := animals(t)
	rewrite(t, filepath.Join(path, "images-00000.npy"), func(b []byte) []byte { return b[:store.HeaderBytes+192*100+5] })
	rewrite(t, filepath.Join(path, "images-00001.npy"), flip(store.HeaderBytes))
	rewrite(t, filepath.Join(path, "labels-00000.npy"), func(b []byte) []byte { return append(b, 1, 2, 3) })
	rewrite(t, filepath.Join(path, "labels-00001.npy"), flip(store.HeaderBytes+8))
	for _, name := range []string{"images-00000.crc.npy", "labels-00001.crc.npy"} {
		if err := os.Remove(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	v := verify(t, path)
	for _, d := range v.Damages {
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
		t.Fatalf("%d damages, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

func TestVerifyTruncatedAnywhere(t *testing.T) {
	path := animals(t)
	file := filepath.Join(path, "images-00001.npy")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 1000 {
		rewrite(t, file, func([]byte) []byte { return whole[:n] })
		if v := verify(t, path); v.Whole || v.Damages[0].File != "images-00001.npy" || v.Damages[0].Offset != int64(n) {
			t.Errorf("cut at %d: %+v", n, v.Damages)
		}
	}
}

func TestVerifyNotesUnknownFiles(t *testing.T) {
	path := animals(t)
	if err := os.WriteFile(filepath.Join(path, "notes.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	v := verify(t, path)
	if !v.Whole || len(v.Unknown) != 1 || v.Unknown[0] != "notes.txt" {
		t.Errorf("%+v", v)
	}
	var loud, quiet strings.Builder
	if err := errors.Join(v.Render(&loud, false), v.Render(&quiet, true)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(loud.String(), "note: notes.txt is no file of the dataset\n") || quiet.String() != "" {
		t.Errorf("loud %q, quiet %q", &loud, &quiet)
	}
}

func TestVerifyForeignHDF5SaysWhatItCannot(t *testing.T) {
	v := verify(t, small("new-chunks"))
	if !v.Whole || v.Checksums != 0 || len(v.Unchecked) != 4 {
		t.Errorf("%+v", v)
	}
	var b strings.Builder
	if err := v.Render(&b, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "not checked: /tree: it has no checksums") || !strings.Contains(b.String(), "its structure is sound") {
		t.Errorf("got\n%s", &b)
	}
}

func TestVerifyWithoutManifest(t *testing.T) {
	path := animals(t)
	rewrite(t, filepath.Join(path, store.ManifestName), func(b []byte) []byte { return b[:len(b)/2] })
	if _, err := Verify(context.Background(), path, VerifyOptions{}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

func TestVerifyStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	cancel(stop)
	whole, broken := animals(t), animals(t)
	rewrite(t, filepath.Join(broken, "images-00000.npy"), flip(0))
	for _, path := range []string{whole, broken} {
		if _, err := Verify(ctx, path, VerifyOptions{}); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	}
}
