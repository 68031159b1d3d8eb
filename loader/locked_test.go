package loader_test

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/mlock"
	"github.com/penstock/penstock/loader/sampler"
)

// With an Allocator, batches are views only if it allows that.
func TestLockedViews(t *testing.T) {
	for _, views := range []bool{false, true} {
		m := &mlock.Memory{Views: views}
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Allocator: m})
		visit(t, ld, 0)
		st := ld.Stats()
		if (st.CopiedBytes == 0) != views || (st.RingBytes == 0) != views {
			t.Errorf("views %v: %d bytes copied, a ring of %d", views, st.CopiedBytes, st.RingBytes)
		}
		if !views && (st.Pinned > 0) == (st.Unpinned != "") {
			t.Errorf("%d bytes pinned; why not: %q", st.Pinned, st.Unpinned)
		}
	}
}

// counted is an Allocator of the Go heap that knows what is not given back.
type counted struct {
	mu   sync.Mutex
	held map[*byte]int
	n    int // allocations
}

func (m *counted) Alloc(n int) ([]byte, error) {
	b := make([]byte, n)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[&b[0]] = n
	m.n++
	return b, nil
}

func (m *counted) Free(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[&b[0]] != len(b) {
		panic("Free of what Alloc did not return")
	}
	delete(m.held, &b[0])
	for i := range b {
		b[i] = 0xEE
	}
	return nil
}

// holds reports whether b is in it.
func (m *counted) holds(b []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, n := range m.held {
		from, at := uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		if at >= from && at+uintptr(len(b)) <= from+uintptr(n) {
			return true
		}
	}
	return false
}

// Rows of a field of variable length are in the caller's Memory too, which is given back when
// larger memory takes its place and at Close.
func TestMemoryRagged(t *testing.T) {
	for _, budget := range []int{0, 1 << 20} {
		m := &counted{held: make(map[*byte]int)}
		ld, err := loader.New(newWords(6000), loader.Options{BatchSize: 1500, Sampler: sampler.Shuffle{}, Workers: 2, Allocator: m, Budget: budget})
		require.NoError(t, err)
		for epoch := range 3 {
			for b, err := range ld.Epoch(t.Context(), epoch) {
				require.NoError(t, err)
				checkWords(t, b)
				if !m.holds(b.Field("t").Bytes()) || !m.holds(b.Field("x").Bytes()) {
					t.Fatalf("batch %d is not in the Memory", b.Step())
				}
			}
		}
		bytes := 0
		for _, n := range m.held {
			bytes += n
		}
		if got := ld.Stats().RingBytes; got != bytes || budget > 0 && bytes > budget {
			t.Errorf("Stats says %d bytes, there are %d", got, bytes)
		}
		if err := ld.Close(); err != nil || len(m.held) != 0 {
			t.Errorf("Close: %v; %d pieces were not freed", err, len(m.held))
		}
	}
}

func TestSpecs(t *testing.T) {
	ld := open(t, newMemorySource(10, 4), loader.Options{BatchSize: 3, Fields: []string{"y"}})
	if s := ld.Specs(); len(s) != 1 || s[0].Name != "y" {
		t.Errorf("%v", s)
	}
}
