package loader_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// TestMain fails the run if a goroutine of any Loader is left at its end.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftGoroutines(); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines of the loader are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leased is a Source that counts its leases.
type leased interface {
	loader.Source
	leases() int64
}

// open returns a Loader that is closed at the end of the test, which then fails if a kept
// batch or a lease of m is left over.
func open(t testing.TB, m leased, o loader.Options) *loader.Loader {
	t.Helper()
	ld, err := loader.New(m, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := ld.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if held := m.leases(); held != 0 {
			t.Errorf("%d leases are held after Close", held)
		}
	})
	return ld
}

// leftGoroutines returns the stacks of all goroutines if the loader has some, else "". A
// goroutine counts until its last instruction is run, shortly after Close saw its end.
func leftGoroutines() string {
	for range 1000 {
		if !strings.Contains(stacks(), "loader.(*") {
			return ""
		}
		time.Sleep(time.Millisecond)
	}
	return stacks()
}

// stacks returns the stacks of all goroutines but the calling one.
func stacks() string {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	_, others, _ := strings.Cut(all, "\n\n")
	return others
}

// checkBatch fails the test unless the fields of b are those of its records.
func checkBatch(t testing.TB, b loader.Batch) {
	t.Helper()
	x, y := b.Field("x"), tensor.As[int64](b.Field("y"))
	if x.Len() != b.Len() || len(y) != b.Len() || len(b.Indices()) != b.Len() {
		t.Fatalf("batch %d: %d records, but %d images, %d labels, %d indices", b.Step(), b.Len(), x.Len(), len(y), len(b.Indices()))
	}
	width := x.Dim(1)
	for i, r := range b.Indices() {
		if y[i] != int64(3*r) {
			t.Fatalf("batch %d: record %d: label %d", b.Step(), r, y[i])
		}
		for j := range width {
			if got := x.Bytes()[i*width+j]; got != pixel(r, j) {
				t.Fatalf("batch %d: record %d: byte %d is %d, not %d", b.Step(), r, j, got, pixel(r, j))
			}
		}
	}
}

// visit iterates one epoch, checks every batch, and returns the records in order.
func visit(t testing.TB, ld *loader.Loader, epoch int) []int {
	t.Helper()
	var all []int
	step := 0
	for b, err := range ld.Epoch(context.Background(), epoch) {
		require.NoError(t, err)
		if b.Step() != step {
			t.Fatalf("batch %d comes as number %d", b.Step(), step)
		}
		checkBatch(t, b)
		all = append(all, b.Indices()...)
		step++
	}
	if want := ld.Batches(epoch); step != want {
		t.Fatalf("%d batches, but Batches says %d", step, want)
	}
	return all
}

// withProcs runs f with another GOMAXPROCS.
func withProcs(n int, f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	f()
}
