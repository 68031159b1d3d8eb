//go:build !(linux || darwin || freebsd || netbsd || openbsd) || race

package loader_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/loader"
)

// Buffers of the Go heap are told as being in ordinary pages, however large.
func TestSmallPagesOfTheHeap(t *testing.T) {
	for _, memory := range []loader.Memory{nil, &loader.Locked{}} {
		ld := open(t, newMemorySource(1000, 10_000), loader.Options{BatchSize: 100, Workers: 1, Order: loader.Shuffle{}, Memory: memory})
		visit(t, ld, 0)
		if why := ld.Stats().SmallPages; !strings.Contains(why, "the Go heap") {
			t.Errorf("%T: %q", memory, why)
		}
	}
}
