package kinds

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

var flips = flag.Int("flips", 100, "bits of each compressed source that TestFlippedBits flips")

// bzip2Tar is a tar file of 0.bin, 0.cls, 0.txt to 2.txt, by Python's tarfile and bz2.
const bzip2Tar = `QlpoOTFBWSZTWQcSXMoAAN5/gv///////////////////8ACAAyIMAEZWQ7QAATAAGgDUwGgAAAAAmARgCGAAANKjTTaUbQQaGmAjTEYhpiGmJkZDBGhgQMgaGhkZDI0BtVNEajIAMQAAAAAaaAAAAAAAABoxDJ6kU+i8EpQ0JNK12pDmBgvRtttsT5CSGYkR7DdeMY7GEoglPISdHhLkASdTgk/EkSZ9tCVBL0LZAaAA8SPoEKJGkSpk4KhSqVrFq5eF8sGLJmCAIEMQGjVsG3cOfLt49fP4AQbpjGMYzFnRJwSafsxxoQK+kwELAcQgXWJNiBbhxAIow4sEv7FRMYyBkEEFp561MQCQBRtgjjiB6RJwDEAkQC49MQUJ5Mre3+CXMmzp/DxUOPk5aNKnUq1ubP5+jp6q9jr7O3u0CA7Lvt7u/weiXjmiXlDPNo9PV4e3v8fMsRfr7fEZwjx5H5OiX66fwlHlIkiVkNQSEJQXZTCEUYB/i7kinChIA4kuZQ=`

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(data, nil)
}

// compressedSources returns the files of compressed sources by name; the first is the source, and the one whose bits are flipped.
func compressedSources(t *testing.T) map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(rng.Uint32() % 50)
	}
	var samples, table, lines []string
	var records []byte
	for i := range 20 {
		text := fmt.Sprintf("text %d", i)
		samples = append(samples, fmt.Sprintf("%02d.bin=%s", i, noise[40*i:40*i+40]), fmt.Sprintf("%02d.cls=%d", i, i%3), fmt.Sprintf("%02d.txt=%s", i, text))
		table = append(table, fmt.Sprintf("%d,%s,%v", i, text, float64(noise[i])/7))
		lines = append(lines, fmt.Sprintf(`{"id": %d, "text": %q}`, i, text))
	}
	tarred, csv, jsonl := []byte(packed(t, samples...)), []byte("id,text,x\n"+strings.Join(table, "\n")+"\n"), []byte(strings.Join(lines, "\n")+"\n")
	records, err := os.ReadFile("testdata/tfrecord/ints.tfrecord")
	require.NoError(t, err)
	idx := append([]byte{0, 0, 8, 3, 0, 0, 0, 30, 0, 0, 0, 10, 0, 0, 0, 10}, noise...)
	array := npy(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (30, 50), }"+strings.Repeat(" ", 64)+"\n", 0)
	bz, err := base64.StdEncoding.DecodeString(bzip2Tar)
	require.NoError(t, err)
	return map[string][]byte{
		"x.tar.gz": gzipped(t, tarred), "x.tar.zst": zstandard(t, tarred), "x.tar.bz2": bz,
		"x.csv.gz": gzipped(t, csv), "x.csv.zst": zstandard(t, csv), "x.jsonl.gz": gzipped(t, jsonl), "x.jsonl.zst": zstandard(t, jsonl),
		"x.tfrecord.gz": gzipped(t, records), "x.tfrecord.zst": zstandard(t, records),
		"x-images-idx3-ubyte.gz": gzipped(t, idx), "x.npz": zipped(t, "x.npy", append(array, noise...)),
		"x.zip": []byte(zipOf(t, samples...)), "classes.zip": []byte(zipOf(t, "cat/1.png=abcdefgh", "cat/2.png=bcdefghi", "dog/1.png=ijklmnop")),
		"shard.00000.mds.zstd": zstandard(t, mdsShard(noise)), "shard.00000.mds.gz": gzipped(t, mdsShard(noise)),
	}
}

// mdsShard returns a shard of 20 samples of bytes.
func mdsShard(noise []byte) []byte {
	const n = 20
	b := binary.LittleEndian.AppendUint32(nil, n)
	at := 4 + 4*(n+1)
	for i := range n + 1 {
		b = binary.LittleEndian.AppendUint32(b, uint32(at+44*i))
	}
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, 40)
		b = append(b, noise[40*i:40*i+40]...)
	}
	return b
}

// values are the fields of a source and the values of its samples, nil for one that is bad, or the error that refuses it.
func values(t *testing.T, path string) (fields []string, rows [][]string, err error) {
	s, err := Open(t.Context(), path, source.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	for _, f := range s.Info().Fields {
		fields = append(fields, fmt.Sprint(f.Name, f.Spec, f.Classes, f.Content))
	}
	fields = append(fields, fmt.Sprint(s.Info().Ignored.Count))
	v := source.NewValues(len(s.Info().Fields))
	for sample, err := range s.Samples() {
		if err != nil {
			return fields, rows, err
		}
		v.Clear()
		if sample.Data.Read(v) != nil {
			rows = append(rows, nil)
			continue
		}
		row := []string{}
		for i := range v.Len() {
			row = append(row, string(v.Get(i)))
		}
		rows = append(rows, row)
	}
	return fields, rows, nil
}

// writeCompressed writes a source and returns its path: of a shard, its folder with the index.
func writeCompressed(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.WriteFile(path, data, 0o666)
	if method, shard := strings.CutPrefix(name, "shard.00000.mds."); shard && err == nil {
		path = dir
		index := map[string]any{"version": 2, "shards": []any{map[string]any{
			"column_encodings": []string{"bytes"}, "column_names": []string{"x"}, "column_sizes": []any{nil}, "compression": method, "format": "mds", "hashes": []string{},
			"raw_data": map[string]any{"basename": "shard.00000.mds", "bytes": 4 + 4*21 + 44*20, "hashes": map[string]string{}}, "samples": 20, "size_limit": 1 << 26, "version": 2,
			"zip_data": map[string]any{"basename": name, "bytes": len(data), "hashes": map[string]string{}},
		}}}
		var text []byte
		if text, err = json.Marshal(index); err == nil {
			err = os.WriteFile(filepath.Join(dir, "index.json"), text, 0o666)
		}
	}
	require.NoError(t, err)
	return path
}

// A bit that is flipped in a compressed source changes no value: the source is refused, a sample is bad, or nothing changes.
func TestFlippedBits(t *testing.T) {
	for name, good := range compressedSources(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fields, rows, err := values(t, writeCompressed(t, dir, name, good))
			if err != nil || len(rows) < 3 || slices.ContainsFunc(rows, func(r []string) bool { return r == nil }) {
				t.Fatalf("%d rows, error %v", len(rows), err)
			}
			rng := rand.New(rand.NewPCG(3, 4))
			refused := 0
			for range *flips {
				bit := rng.IntN(8 * len(good))
				bad := bytes.Clone(good)
				bad[bit/8] ^= 1 << (bit % 8)
				gotFields, got, err := values(t, writeCompressed(t, dir, name, bad))
				if err != nil || !slices.Equal(gotFields, fields) && gotFields[len(gotFields)-1] != fields[len(fields)-1] {
					refused++ // or it says that a member was left out
					continue
				}
				if what := different(fields, gotFields, rows, got); what != "" {
					t.Errorf("bit %d of byte %d: %s", bit%8, bit/8, what)
				}
			}
			if refused == 0 {
				t.Error("none was refused")
			}
		})
	}
}

// different says how samples that were read differ from the good ones, where none of them is bad.
func different(wantFields, gotFields []string, want, got [][]string) string {
	switch {
	case slices.ContainsFunc(got, func(row []string) bool { return row == nil }):
		return ""
	case !slices.Equal(wantFields, gotFields):
		return fmt.Sprintf("fields %q, want %q", gotFields, wantFields)
	case len(got) != len(want):
		return fmt.Sprintf("%d samples, want %d", len(got), len(want))
	}
	for i, row := range got {
		if !slices.Equal(row, want[i]) {
			return fmt.Sprintf("sample %d is %q, want %q", i, row, want[i])
		}
	}
	return ""
}
