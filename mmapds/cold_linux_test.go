package mmapds_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
)

// bytesRead returns how many bytes this process had storage read.
func bytesRead(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nread_bytes: ")
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Skipf("this system does not count reads: %v", err)
	}
	return n
}

// majorFaults returns how often this process waited for a page.
func majorFaults(t *testing.T) int {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return int(u.Majflt)
}

// coldWays read some records.
var coldWays = map[string]func(t *testing.T, ds *mmapds.Dataset, indices []int, size int) error{
	"Gather": func(t *testing.T, ds *mmapds.Dataset, indices []int, size int) error {
		return ds.Gather(t.Context(), "x", indices, make([]byte, len(indices)*size))
	},
	"At": func(t *testing.T, ds *mmapds.Dataset, indices []int, _ int) error {
		r := records(t, ds, "x")
		for _, i := range indices {
			b, err := r.At(i)
			if err != nil {
				return err
			}
			touchPages(b)
		}
		return nil
	},
	"Iter": func(t *testing.T, ds *mmapds.Dataset, indices []int, _ int) error {
		for b, err := range records(t, ds, "x").Iter(indices) {
			if err != nil {
				return err
			}
			touchPages(b)
		}
		return nil
	},
	"Slice": func(_ *testing.T, ds *mmapds.Dataset, indices []int, _ int) error {
		for _, i := range indices {
			v, err := ds.Slice("x", i, i+1)
			if err != nil {
				return err
			}
			touchPages(v.Bytes())
		}
		return nil
	},
	"Prefetch and Warm": func(_ *testing.T, ds *mmapds.Dataset, indices []int, _ int) error {
		for _, i := range indices {
			if err := ds.Prefetch("x", i, i+1); err != nil {
				return err
			}
		}
		for _, i := range indices {
			if err := ds.Warm("x", i, i+1); err != nil {
				return err
			}
		}
		return nil
	},
}

var touched byte

func touchPages(b []byte) {
	for i := 0; i < len(b); i += 512 {
		touched += b[i]
	}
}

// Records that are not in memory are read by their size, by all ways, and whether the dataset fits into memory, nearly, or by far not;
// also if the kernel took pages back that were read before.
func TestColdReadsAreOfTheirSize(t *testing.T) {
	for _, size := range []int{4096, 20_000, 32_768, 150_528} {
		total := max(600*size, 24<<20) / size * size
		path := bytesDataset(t, size, total)
		for _, memory := range []int{0, total * 2 / 3, total / 4} {
			for way, read := range coldWays {
				t.Run(fmt.Sprintf("%d/%d/%s", size, memory*100/total, way), func(t *testing.T) {
					ds := openCold(t, path, mmapds.WithMemory(int64(memory)))
					all, err := ds.Slice("x", 0, ds.Len())
					require.NoError(t, err)
					indices := rand.Perm(ds.Len())[:48]
					for round := range 2 {
						if round == 1 {
							if memory == 0 {
								return // what was read there is taken to stay, until a look finds out
							}
							unmapPages(t, all.Bytes())
							evict(t, path)
						}
						before := bytesRead(t)
						require.NoError(t, read(t, ds, indices, size))
						got, want := bytesRead(t)-before, 0
						for _, i := range indices {
							want += (i*size+size+4095)&^4095 - i*size&^4095
						}
						if got < want/2 {
							t.Skipf("%d bytes were read of %d: this file system keeps the rest in memory", got, want)
						}
						if got > want*13/10 {
							t.Errorf("round %d: %d bytes were read for %d that are needed: %.1f times", round, got, want, float64(got)/float64(want))
						}
					}
				})
			}
		}
	}
}

// Records that are read one by one in their order are read together.
func TestColdWalk(t *testing.T) {
	const size = 4096
	path := bytesDataset(t, size, 8<<20)
	for _, memory := range []int64{0, 1 << 20} {
		ds := openEvicted(t, path, mmapds.WithMemory(memory))
		r := records(t, ds, "x")
		before, waits := bytesRead(t), majorFaults(t)
		for i := range r.Len() {
			b, err := r.At(i)
			require.NoError(t, err)
			if b[64] != byte(i+1) {
				t.Fatalf("record %d: wrong bytes", i)
			}
		}
		if got := bytesRead(t) - before; got > 9<<20 {
			t.Errorf("%d bytes of memory: %d bytes were read", memory, got)
		}
		if waits = majorFaults(t) - waits; waits > r.Len()/8 {
			t.Errorf("%d bytes of memory: %d waits for %d records", memory, waits, r.Len())
		}
		require.NoError(t, ds.Close())
	}
}
