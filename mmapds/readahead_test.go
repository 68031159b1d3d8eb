package mmapds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/testkit/require"
)

// calls are the system calls on mapped memory that a test counted, instead of making them: the test
// sets the state of the page cache.
type calls struct {
	base               []byte
	willNeed           [][2]int // offsets in base
	populate, resident int
	inMemory           func(from, to int) bool
}

// count has the calls on the only segment of a field counted until the end of the test.
func count(t *testing.T, c *memory, inMemory func(from, to int) bool) *calls {
	n := &calls{base: c.segments[0].data, inMemory: inMemory}
	c.looked.Store(math.MaxInt64 / 2) // no look for what was evicted
	offset := func(b []byte) int {
		return int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(n.base))))
	}
	hint, fetch, look := willNeed, populate, resident
	t.Cleanup(func() { willNeed, populate, resident = hint, fetch, look })
	willNeed = func(b []byte) {
		n.willNeed = append(n.willNeed, [2]int{offset(b), offset(b) + len(b)})
	}
	populate = func(b []byte) error { n.populate++; return nil }
	resident = func(b []byte) (in, pages int, err error) {
		n.resident++
		pages = (len(b) + 1<<pageShift - 1) >> pageShift
		if at := offset(b); n.inMemory(at, at+len(b)) {
			in = pages
		}
		return in, pages, nil
	}
	return n
}

func everything(int, int) bool { return true }
func nothing(int, int) bool    { return false }

// gatherAll gathers all records in random order, and checks them.
func gatherAll(t *testing.T, d *Dataset, size int) {
	t.Helper()
	order := rand.New(rand.NewPCG(1, 2)).Perm(d.Len())
	dst := make([]byte, 64*size)
	for ; len(order) > 0; order = order[min(64, len(order)):] {
		batch := order[:min(64, len(order))]
		require.NoError(t, d.Gather(t.Context(), "x", batch, dst[:len(batch)*size]))
		for k, i := range batch {
			if dst[k*size] != byte(i) || dst[(k+1)*size-1] != byte(i) {
				t.Fatalf("record %d begins with %d", i, dst[k*size])
			}
		}
	}
}

// Data in the page cache is mapped with two system calls per block of 64 pages, however small the
// records are, and nothing is asked of the disk.
func TestFewCallsForWhatIsInMemory(t *testing.T) {
	for _, size := range []int{1, 784, 4096, 20_000} {
		d := openOf(t, (2<<20)/max(64, size), size)
		c := d.fields[0].rows.mapped.memory
		c.reported = true
		n := count(t, c, everything)
		gatherAll(t, d, size)
		blocks := (len(n.base) + blockBytes - 1) / blockBytes
		if most := 2 * blocks; len(n.willNeed) > 0 || n.populate > most || n.resident > most || !c.full() && size > 1 {
			t.Errorf("%d bytes: %d hints, %d populated, %d looks for %d blocks", size, len(n.willNeed), n.populate, n.resident, blocks)
		}
		before := n.populate + n.resident
		gatherAll(t, d, size)
		if again := n.populate + n.resident - before; again > 0 {
			t.Errorf("%d bytes: %d calls for pages that are mapped", size, again)
		}
	}
}

// The disk is asked for each page of a batch once, in order, by one system call for those that
// follow each other, and few calls look whether they are in memory.
func TestFewCallsForTheDisk(t *testing.T) {
	const size = 784
	d := openOf(t, 20_000, size)
	c := d.fields[0].rows.mapped.memory
	c.reported = true
	n := count(t, c, nothing)
	scattered, dense := make([]int, 200), make([]int, 200)
	for k := range scattered {
		scattered[k], dense[k] = k*97, 19_700+k
	}
	for _, s := range []struct {
		rows  []int
		hints int
	}{{scattered, 200}, {dense, 1}, {append(slices.Clone(dense), dense...), 1}} {
		rand.Shuffle(len(s.rows), func(i, j int) { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] })
		c.segments[0].warm.clear()
		n.willNeed, n.resident = nil, 0
		require.NoError(t, d.Gather(t.Context(), "x", s.rows, make([]byte, len(s.rows)*size)))
		if len(n.willNeed) != s.hints || n.resident > looksInVain+len(s.rows)/looksAfter+1 {
			t.Errorf("%d records: %d hints, want %d; %d looks", len(s.rows), len(n.willNeed), s.hints, n.resident)
		}
		if !slices.IsSortedFunc(n.willNeed, func(a, b [2]int) int { return a[0] - b[1] }) {
			t.Errorf("hints are not in order: %v", n.willNeed)
		}
		for _, i := range s.rows {
			if !slices.ContainsFunc(n.willNeed, func(h [2]int) bool { return h[0] <= i*size && (i+1)*size <= h[1] }) {
				t.Errorf("record %d is not asked for", i)
			}
		}
	}
}

// Pages that come to the page cache later are found there, although looking was given up.
func TestMemoryIsFoundAgain(t *testing.T) {
	const size = 784
	d := openOf(t, 4000, size)
	c := d.fields[0].rows.mapped.memory
	c.reported = true
	n := count(t, c, nothing)
	gatherAll(t, d, size)
	c.segments[0].warm.clear()
	n.inMemory, n.willNeed = everything, nil
	gatherAll(t, d, size)
	if len(n.willNeed) > looksAfter || !c.full() {
		t.Errorf("%d hints; all pages mapped: %v", len(n.willNeed), c.full())
	}
}

// If the system does not report what is in memory, no page is assumed to be.
func TestNothingIsTold(t *testing.T) {
	d := openOf(t, 4000, 784)
	c := d.fields[0].rows.mapped.memory
	c.reported = false
	n := count(t, c, everything)
	gatherAll(t, d, 784)
	if n.resident > 0 || len(n.willNeed) == 0 || n.populate == 0 {
		t.Errorf("%d looks, %d hints, %d populated", n.resident, len(n.willNeed), n.populate)
	}
}

// Over asks for what comes next as Gather does.
func TestFewCallsOver(t *testing.T) {
	d := openOf(t, 4000, 784)
	c := d.fields[0].rows.mapped.memory
	c.reported = true
	n := count(t, c, everything)
	r, err := d.Records("x")
	require.NoError(t, err)
	for _, err := range r.Iter(rand.Perm(4000)) {
		require.NoError(t, err)
	}
	if most := 2 * ((len(n.base) + blockBytes - 1) / blockBytes); n.populate+n.resident > most || len(n.willNeed) > 0 {
		t.Errorf("%d populated, %d looks, %d hints; want %d calls", n.populate, n.resident, len(n.willNeed), most)
	}
}
