package loader_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

func TestNewReportsEveryBadOption(t *testing.T) {
	_, err := loader.New(newMemorySource(10, 4), loader.Options{
		BatchSize: 0, Workers: -2, Prefetch: -2, Fields: []string{"x", "z", "x"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"loader: options: ", "BatchSize is 0", "Workers is -2", "Prefetch is -2", `no field "z"; it has ["x" "y"]`, `"x" is named twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	huge := newMemorySource(10, 4)
	huge.specs[0].Shape = tensor.Shape{1 << 39}
	bad := newMemorySource(10, 4)
	bad.specs[0].DType = tensor.Invalid
	none := newMemorySource(10, 4)
	none.specs = nil
	for want, c := range map[string]struct {
		m *memory
		o loader.Options
	}{
		"more than 16 TiB":            {huge, loader.Options{BatchSize: 1 << 20}},
		"BatchSize is 922337203685":   {newMemorySource(10, 4), loader.Options{BatchSize: math.MaxInt}},
		`field "x": no dtype`:         {bad, loader.Options{BatchSize: 1}},
		"has no fields":               {none, loader.Options{BatchSize: 1}},
		"DropLast leaves no batch":    {newMemorySource(10, 4), loader.Options{BatchSize: 11, DropLast: true}},
		"Workers is 1000000; it must": {newMemorySource(10, 4), loader.Options{BatchSize: 1, Workers: 1e6}},
	} {
		if _, err := loader.New(c.m, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}

func TestDefaultWorkersLeaveOneCoreFree(t *testing.T) {
	for procs, want := range map[int]int{1: 1, 2: 1, 5: 4} {
		before := runtime.GOMAXPROCS(procs)
		ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 20, Sampler: sampler.Shuffle{}}) // too few batches to try another number
		runtime.GOMAXPROCS(before)
		visit(t, ld, 0)
		const page = 4096
		if got := ld.Stats().RingBytes; got != (2+want+1)*2*page {
			t.Errorf("GOMAXPROCS %d: ring of %d pages; want two for each of %d workers and 3 more", procs, got/page, want)
		}
	}
}
