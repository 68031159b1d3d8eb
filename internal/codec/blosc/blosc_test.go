package blosc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// chunks calls f with the chunks in a folder, and with their data.
func chunks(t *testing.T, dir string, f func(name string, chunk, data []byte)) (n int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.blosc"))
	require.NoError(t, err)
	for _, path := range names {
		chunk, err := os.ReadFile(path)
		require.NoError(t, err)
		var element, count int
		name := filepath.Base(path)
		_, fields, _ := bytes.Cut([]byte(name), []byte("-"))
		var shuffle int
		if _, err := fmt.Sscanf(string(fields), "%d-%d-%d-", &shuffle, &element, &count); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data := make([]byte, element*count)
		for i := range count {
			for j, v := 0, uint64(i/3*256+i*i%11); j < min(element, 8); j, v = j+1, v>>8 {
				data[i*element+j] = byte(v)
			}
		}
		f(name, chunk, data)
	}
	return len(names)
}

func testDecode(t *testing.T, dir string) {
	n := chunks(t, dir, func(name string, chunk, data []byte) {
		if n, err := Size(chunk); n != len(data) || err != nil {
			t.Errorf("%s: Size is %d, %v", name, n, err)
		}
		got := make([]byte, len(data))
		if err := Decode(got, chunk); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: wrong data, or %v", name, err)
		}
	})
	if n < 15 {
		t.Errorf("only %d chunks", n)
	}
}

func TestDecode(t *testing.T) { testDecode(t, "testdata") }

func TestDecodeNumcodecs(t *testing.T) {
	dir := t.TempDir()
	pythontest.Run(t, "from numcodecs import blosc", "testdata/generate.py", dir)
	testDecode(t, dir)
}

// Corrupt chunks are errors, or have some data of the right length.
func TestDecodeCorrupt(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	chunks(t, "testdata", func(name string, chunk, data []byte) {
		got := make([]byte, len(data))
		for range 300 {
			bad := bytes.Clone(chunk)
			for range 1 + rng.IntN(3) {
				bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
			}
			_ = Decode(got, bad)
			cut := bad[:rng.IntN(len(bad))]
			if err := Decode(got, cut); err == nil && len(data) > 0 {
				t.Errorf("%s: %d bytes of %d were decoded", name, len(cut), len(chunk))
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.blosc")
	for _, name := range names {
		chunk, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(chunk)
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		n, err := Size(chunk)
		if err != nil || n > 1<<20 {
			return
		}
		_ = Decode(make([]byte, n), chunk)
	})
}
