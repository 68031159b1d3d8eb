package memory_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader/internal/memory"
)

// counting is an Allocator with room for some bytes.
type counting struct {
	room, used int
	calls      int
}

var errFull = errors.New("full")

func (c *counting) Alloc(n int) ([]byte, error) {
	if c.used+n > c.room {
		return nil, errFull
	}
	c.used += n
	c.calls++
	return make([]byte, n), nil
}

func (c *counting) Free(b []byte) error {
	c.used -= len(b)
	return nil
}

// The slots that a Ring begins with share one allocation. Slots that are added later have their own.
func TestRing(t *testing.T) {
	from := &counting{room: 1 << 20}
	r := memory.NewRing(from, []int{5000, 0, 1})
	if r.Stride() != 3*memory.PageSize || r.Offset(1) != 2*memory.PageSize || r.Offset(2) != 2*memory.PageSize {
		t.Fatalf("stride %d, offsets %d and %d", r.Stride(), r.Offset(1), r.Offset(2))
	}
	if got := r.Extend(3); got != 3 || from.calls != 0 {
		t.Fatalf("%d slots after %d allocations", got, from.calls)
	}
	a, err := r.Slot(0)
	if err != nil || len(a) != r.Stride() || from.calls != 1 || r.Bytes() != 3*r.Stride() {
		t.Fatalf("%d bytes, %v, %d allocations of %d bytes in all", len(a), err, from.calls, r.Bytes())
	}
	if got := r.Extend(2); got != 2 || r.Bytes() != 5*r.Stride() {
		t.Fatalf("added %d, %d bytes in all", got, r.Bytes())
	}
	from.room = from.used + r.Stride()
	if got := r.Extend(2); got != 1 {
		t.Fatalf("added %d with memory for one", got)
	}
	if err := r.Free(); err != nil || from.used != 0 || r.Bytes() != 0 {
		t.Fatalf("%v: %d bytes left", err, from.used)
	}
}

// Rows of a slot grow to what is asked for.
func TestRowsGrow(t *testing.T) {
	from := &counting{room: 1 << 20}
	r := memory.NewRing(from, []int{0})
	r.Extend(1)
	if mem, err := r.Slot(0); mem != nil || err != nil {
		t.Fatalf("%d bytes of a slot without buffers, %v", len(mem), err)
	}
	for _, n := range []int{1, memory.PageSize, 5000, 3} {
		mem, err := r.Grow(0, 0, n)
		if err != nil || len(mem) < n {
			t.Fatalf("%d bytes for %d: %v", len(mem), n, err)
		}
	}
	if from.calls != 2 || from.used != 2*memory.PageSize {
		t.Errorf("%d allocations, %d bytes left of them; the first one was too small in the end", from.calls, from.used)
	}
	if _, err := r.Grow(0, 0, 2<<20); !errors.Is(err, errFull) {
		t.Errorf("%v, not %v", err, errFull)
	}
	if err := r.Free(); err != nil || from.used != 0 {
		t.Errorf("%v: %d bytes left", err, from.used)
	}
}

// Pages start on pages and are zero.
func TestPages(t *testing.T) {
	var p memory.Pages
	b, err := p.Alloc(10_000)
	require.NoError(t, err)
	if len(b) != 10_000 || slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
		t.Error("the bytes are not zero")
	}
	b[0], b[len(b)-1] = 1, 1
	require.NoError(t, p.Free(b))
}
