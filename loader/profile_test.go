package loader_test

import (
	"bytes"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
)

func TestWorkersAreLabeled(t *testing.T) {
	ld := open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Workers: 2})
	next, stop := pull(ld)
	defer stop()
	next(t)
	var profile strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	if want := `labels: {"loader":"worker"}`; !strings.Contains(profile.String(), want) {
		t.Errorf("the goroutine profile lacks %s", want)
	}
}

func TestTraceHasRegions(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("the tests are being traced")
	}
	var data bytes.Buffer
	require.NoError(t, trace.Start(&data))
	visit(t, open(t, newMemorySource(100, 4), loader.Options{BatchSize: 10, Workers: 2, Sampler: sampler.Shuffle{}}), 0)
	trace.Stop()
	for _, want := range []string{"loader: batch", "loader: piece of the first batch"} {
		if !bytes.Contains(data.Bytes(), []byte(want)) {
			t.Errorf("the trace lacks the region %q", want)
		}
	}
}
