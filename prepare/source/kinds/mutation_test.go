package kinds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

var mutations = flag.Int("mutations", 300, "files of each format that TestMutations changes")

// A file that was changed anywhere is refused, or read to its end with values of the promised sizes; memory
// follows the file's size, and it takes no longer than a moment.
func TestMutations(t *testing.T) {
	for _, kind := range []string{"tfrecord", "zip", "arrow", "mds", "tokens"} {
		t.Run(kind, func(t *testing.T) {
			files := fixtures(t, filepath.Join("testdata", kind))
			rng := rand.New(rand.NewPCG(7, 7))
			dir := filepath.Join(t.TempDir(), "changed")
			for i := range *mutations {
				name := files[rng.IntN(len(files))]
				path, size := mutated(t, rng, name, dir)
				if what := bounded(t, kind, path, size); what != "" {
					kept := filepath.Join(os.TempDir(), fmt.Sprintf("mutation-%s-%d", kind, i))
					t.Errorf("mutation %d of %s: %s; see %s: %v", i, name, what, kept, os.CopyFS(kept, os.DirFS(dir)))
				}
				require.NoError(t, os.RemoveAll(dir))
			}
		})
	}
}

// fixtures returns the sources in a folder.
func fixtures(t *testing.T, dir string) (files []string) {
	t.Helper()
	expected, err := filepath.Glob(filepath.Join(dir, "*.expected.json"))
	if err != nil || len(expected) == 0 {
		t.Fatalf("%d files, %v", len(expected), err)
	}
	for _, e := range expected {
		files = append(files, strings.TrimSuffix(e, ".expected.json"))
	}
	return files
}

// mutated copies a source to a folder, with one of its files changed, and returns its path there and its bytes.
func mutated(t *testing.T, rng *rand.Rand, name, dir string) (path string, size int) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if stem, found := strings.CutSuffix(name, ".bin"); found { // of Megatron
		files, _ = filepath.Glob(stem + ".[bi][id][nx]")
	} else if stem, found := strings.CutSuffix(name, ".idx"); found {
		files, _ = filepath.Glob(stem + ".[bi][id][nx]")
	}
	change := rng.IntN(len(files))
	for i, f := range files {
		rel, relErr := filepath.Rel(filepath.Dir(name), f)
		data, readErr := os.ReadFile(f)
		if i == change && len(data) > 0 {
			data = mutate(rng, data)
		}
		to := filepath.Join(dir, rel)
		err = errors.Join(err, relErr, readErr, os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, data, 0o666))
		size += len(data)
	}
	require.NoError(t, err)
	return filepath.Join(dir, filepath.Base(name)), size
}

// mutate changes bytes that follow no rule.
func mutate(rng *rand.Rand, good []byte) []byte {
	b := bytes.Clone(good)
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(b))
		switch rng.IntN(7) {
		case 0, 1:
			b[at] ^= 1 << rng.IntN(8)
		case 2:
			b[at] = byte(rng.Uint32())
		case 3: // numbers that are too large
			extreme := []uint64{0, 1, 1<<31 - 1, 1<<32 - 1, 1 << 40, 1<<63 - 1, 1<<64 - 1}[rng.IntN(7)]
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], extreme)
			copy(b[at:], word[:[]int{1, 2, 4, 8}[rng.IntN(4)]])
		case 4:
			b = b[:max(at, 1)]
		case 5: // bytes twice, or left out
			to := min(at+rng.IntN(64), len(b))
			b = slices.Concat(b[:to], b[[]int{at, to}[rng.IntN(2)]:])
		case 6:
			clear(b[at:min(at+rng.IntN(16), len(b))])
		}
		if len(b) == 0 {
			return []byte{0}
		}
	}
	return b
}

// bounded reads a source to its end and says what it took too much of, "" if nothing.
func bounded(t *testing.T, kind, path string, size int) (what string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return bounds(256<<20+200*size, func() string { return readWhole(ctx, kind, path) })
}

// bounds returns what f says, and what f took too much of: more than so many bytes of memory, or 15 seconds.
func bounds(memory int, f func() string) (what string) {
	defer func() {
		if p := recover(); p != nil {
			what = fmt.Sprint("panic: ", p, string(debug.Stack()))
		}
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := usage.Clock()
	what = f()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(memory) {
		what += fmt.Sprintf(" %d bytes were allocated, and not %d", took, memory)
	}
	if took := usage.Clock() - begin; took > 15*time.Second {
		what += fmt.Sprint(" it computed for ", took)
	}
	return what
}

// readWhole reads all that a source has and says what it promised and did not hold.
func readWhole(ctx context.Context, kind, path string) string {
	s, err := Open(ctx, path, source.Options{Kind: kind, Fields: map[bool]string{true: "tokens:uint16[4]"}[kind == "tokens" && strings.HasPrefix(filepath.Base(path), "gpt")], IsImage: func([]byte) bool { return false }})
	if err != nil {
		return ""
	}
	defer s.Close()
	info := s.Info()
	v, n := source.NewValues(len(info.Fields)), int64(0)
	for sample, err := range s.Samples() {
		if err != nil {
			return ""
		}
		if n++; sample.Data.Read(v) != nil {
			continue
		}
		for i, f := range info.Fields {
			if size := len(v.Get(i)); !f.Ragged && size != f.RecordBytes() || f.Ragged && size%f.RecordBytes() != 0 {
				return fmt.Sprintf("field %s of %v %v has a value of %d bytes", f.Name, f.DType, f.Shape, size)
			}
		}
	}
	if info.Count >= 0 && n != info.Count {
		return fmt.Sprintf("%d samples, but %d were promised", n, info.Count)
	}
	return ""
}

// A bit of a TFRecord that is flipped changes no value: the result is the same, or an error.
func TestTFRecordFlips(t *testing.T) {
	name := "testdata/tfrecord/images-png.tfrecord"
	good, err := os.ReadFile(name)
	require.NoError(t, err)
	s := mustOpen(t, name, source.Options{})
	want := readRows(t, s, 0)
	s.Close()
	path := write(t, "x.tfrecord", "")
	for bit := 0; bit < 8*len(good); bit += 5 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, bad, 0o666))
		s, err := Open(t.Context(), path, source.Options{Kind: "tfrecord"})
		if err != nil {
			continue
		}
		for i, row := range readRows(t, s, 0) {
			if row != want[i] && !strings.Contains(row, "the checksum of the record is wrong") {
				t.Errorf("bit %d: row %d is %.100s", bit, i, row)
			}
		}
		s.Close()
	}
}

// TFRecords of any bytes, and any bytes in a TFRecord.
func FuzzTFRecord(f *testing.F) {
	for _, name := range []string{"ints", "texts", "missing", "sequence", "gzip"} {
		data, err := os.ReadFile("testdata/tfrecord/" + name + ".tfrecord")
		require.NoError(f, err)
		f.Add(data, false)
		f.Add(data[12:len(data)-4], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, framed bool) {
		if framed {
			head := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
			head = binary.LittleEndian.AppendUint32(head, source.MaskedCRC(head))
			data = binary.LittleEndian.AppendUint32(slices.Concat(head, data), source.MaskedCRC(data))
		}
		readAllOf(t, "tfrecord", "x.tfrecord", data)
	})
}
