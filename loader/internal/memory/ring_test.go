package memory_test

import (
	"errors"
	"slices"
	"testing"

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

// The slots that a Ring begins with share one allocation. Slots that are added later have their own, which
// ends with them.
func TestRing(t *testing.T) {
	from := &counting{room: 1 << 20}
	r := memory.NewRing(from, []int{5000, 0, 1})
	if r.Stride() != 3*memory.PageSize || r.Offset(1) != 2*memory.PageSize || r.Offset(2) != 2*memory.PageSize {
		t.Fatalf("stride %d, offsets %d and %d", r.Stride(), r.Offset(1), r.Offset(2))
	}
	if got := r.Extend(3); !slices.Equal(got, []int{0, 1, 2}) || from.calls != 0 {
		t.Fatalf("slots %v after %d allocations", got, from.calls)
	}
	a, err := r.Slot(0)
	if err != nil || len(a) != r.Stride() || from.calls != 1 || r.Bytes() != 3*r.Stride() {
		t.Fatalf("%d bytes, %v, %d allocations of %d bytes in all", len(a), err, from.calls, r.Bytes())
	}
	if got := r.Extend(2); !slices.Equal(got, []int{3, 4}) || r.Bytes() != 5*r.Stride() {
		t.Fatalf("added %v, %d bytes in all", got, r.Bytes())
	}
	r.GiveBack(3)
	if r.Bytes() != 4*r.Stride() || from.used != r.Bytes() {
		t.Fatalf("%d bytes in all, %d allocated", r.Bytes(), from.used)
	}
	if got := r.Extend(1); !slices.Equal(got, []int{3}) {
		t.Fatalf("added %v; a number that was given back comes again", got)
	}
	from.room = from.used
	if got := r.Extend(2); got != nil {
		t.Fatalf("added %v without memory", got)
	}
	if err := r.Free(); err != nil || from.used != 0 || r.Bytes() != 0 {
		t.Fatalf("%v: %d bytes left", err, from.used)
	}
}

// Rows of a slot grow to what is asked for, and end with it.
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
	r.GiveBack(0)
	if from.used != 0 {
		t.Errorf("%d bytes left of a slot that ended", from.used)
	}
}

// Pages start on pages and are zero.
func TestPages(t *testing.T) {
	var p memory.Pages
	b, err := p.Alloc(10_000)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 10_000 || slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
		t.Error("the bytes are not zero")
	}
	b[0], b[len(b)-1] = 1, 1
	if err := p.Free(b); err != nil {
		t.Error(err)
	}
}
