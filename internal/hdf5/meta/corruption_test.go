package meta

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// smallFiles are the committed files that the tests corrupt.
func smallFiles(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/small-*.h5")
	if err != nil || len(names) < 8 {
		t.Fatalf("%d small files, error %v; want at least 8", len(names), err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// counter counts the bytes that are read, and checks what Announce announces.
type counter struct {
	t    testing.TB
	r    io.ReaderAt
	size int64
	n    int64
}

func (c *counter) Announce(parts []Extent) {
	for _, p := range parts {
		if p.Offset < 0 || p.Size <= 0 || p.Offset > c.size || p.Size > c.size-p.Offset {
			c.t.Fatalf("%+v is announced of a file of %d bytes", p, c.size)
		}
	}
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

// exercise opens b without the safety net of Open and uses everything that it gives. It
// fails on an error of no known kind, an extent outside the file and too much work; a panic fails the test anyway.
func exercise(t testing.TB, b []byte, lax bool) (*File, error) {
	t.Helper()
	size := int64(len(b))
	r := &counter{t: t, r: bytes.NewReader(b), size: size}
	f, err := (&File{r: r, Size: size, lax: lax}).open()
	if limit := 2 * (17*size + 1<<20); r.n > limit {
		t.Fatalf("%d bytes read of a file of %d", r.n, size)
	}
	if err != nil {
		checkKind(t, err)
		return nil, err
	}
	for l := range f.Walk() {
		checkKind(t, l.Err)
		if l.Dataset != nil {
			useDataset(t, l.Dataset)
		}
		if found, err := f.Lookup(l.Path); err == nil && l.Kind == Hard && found.Path != l.Path {
			t.Fatalf("lookup of %q gives %q", l.Path, found.Path)
		}
	}
	for _, e := range f.Extents() {
		if e.Offset < 0 || e.Size <= 0 || e.Offset > size || e.Size > size-e.Offset {
			t.Fatalf("extent %+v in a file of %d bytes", e, size)
		}
	}
	return f, nil
}

func checkKind(t testing.TB, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) &&
		!errors.Is(err, ErrNotHDF5) {
		t.Fatalf("error of no known kind: %v", err)
	}
}

func useDataset(t testing.TB, d *Dataset) {
	t.Helper()
	for _, a := range d.Attrs {
		checkKind(t, a.Err)
		_ = a.Value.Any()
		if _, ok := a.Value.Strings(); !ok && a.Err == nil {
			_, _ = a.Value.Floats()
			_, _ = a.Value.Ints()
		}
	}
	err := d.Mappable()
	checkKind(t, err)
	if size := d.file.Size; err == nil && (d.Layout.Offset < 0 || d.Layout.Offset > size ||
		d.Layout.Size > size-d.Layout.Offset) {
		t.Fatalf("%s: mappable, but %d bytes at %d of %d", d.Path, d.Layout.Size, d.Layout.Offset, size)
	}
	_, err = d.Spec()
	checkKind(t, err)
	_, err = d.Sources()
	checkKind(t, err)
	_, err = d.value(1 << 16)
	checkKind(t, err)
	if d.Type != nil {
		_ = d.Type.String()
	}
	_, _ = d.Aligned(), d.Records()
	useChunks(t, d)
}

func useChunks(t testing.TB, d *Dataset) {
	t.Helper()
	r := &counter{t: t, r: d.file.r, size: d.file.Size}
	f := *d.file
	f.r = r
	counted := *d
	counted.file = &f
	table, err := counted.chunks()
	if limit := 2 * (17*f.Size + 1<<20); r.n > limit {
		t.Fatalf("%d bytes read of a file of %d for a chunk index", r.n, f.Size)
	}
	checkKind(t, err)
	if err != nil {
		return
	}
	for i, c := range table.Chunks {
		if c.Offset < 0 || c.Size <= 0 || c.Offset > f.Size || c.Size > f.Size-c.Offset {
			t.Fatalf("%s: chunk %+v in a file of %d bytes", d.Path, c, f.Size)
		}
		if i > 0 && slices.Compare(table.Chunks[i-1].Coord, c.Coord) >= 0 {
			t.Fatalf("%s: chunk %+v after %+v", d.Path, c, table.Chunks[i-1])
		}
		for axis, x := range c.Coord {
			if x%d.Layout.ChunkDims[axis] != 0 {
				t.Fatalf("%s: chunk %+v is not on the grid", d.Path, c)
			}
		}
	}
}

// A file cut short anywhere is an error that says so.
func TestTruncated(t *testing.T) {
	for name, b := range smallFiles(t) {
		t.Run(name, func(t *testing.T) {
			if _, err := exercise(t, b, false); err != nil {
				t.Fatal(err)
			}
			for n := range len(b) {
				if f, err := exercise(t, b[:n], false); err == nil {
					t.Fatalf("cut at byte %d of %d: opens with %d links", n, len(b), len(f.Root.Links))
				}
			}
		})
	}
}

var every = flag.Int("every", 4, "corrupt one in `N` words of a file, and try one in N of the random corruptions")

// Every word is corrupt in several ways, with and without the protection of checksums.
func TestCorrupt(t *testing.T) {
	for name, b := range smallFiles(t) {
		t.Run(name, func(t *testing.T) {
			bad := bytes.Clone(b)
			opened := 0
			for i := range b {
				if i/8%*every != 0 || b[i] == 0 && i%8 != 0 && i%7 != 0 {
					continue // most zeros are unused room
				}
				values := []byte{b[i] ^ 1, b[i] ^ 0x80, 0xff}
				if i%4 < 2 {
					values = []byte{b[i] + 1, b[i] ^ 0x10, 0}
				}
				for _, bad[i] = range values {
					if _, err := exercise(t, bad, i%2 == 0); err == nil {
						opened++
					}
				}
				bad[i] = b[i]
			}
			if opened == 0 {
				t.Error("no corrupt file opens: the corruption never gets past the superblock")
			}
		})
	}
}

// Words are overwritten with the values that break careless arithmetic.
func TestExtremeWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, b := range smallFiles(t) {
		t.Run(name, func(t *testing.T) {
			for range 4000 / *every {
				bad := bytes.Clone(b)
				for range 1 + rng.IntN(3) {
					spoil(rng, bad)
				}
				_, _ = exercise(t, bad, true)
			}
		})
	}
}

// spoil overwrites 1 to 8 bytes with an extreme number, a small one or an offset.
func spoil(rng *rand.Rand, b []byte) {
	n := 1 << rng.IntN(4)
	i := rng.IntN(len(b) - n)
	extremes := []uint64{0, 1, 1<<64 - 1, 1<<63 - 1, 1 << 63, 1<<32 - 1, 1 << 31, uint64(len(b)), uint64(rng.IntN(len(b))),
		rng.Uint64()}
	v := extremes[rng.IntN(len(extremes))]
	for j := range n {
		b[i+j] = byte(v >> (8 * j))
	}
}
