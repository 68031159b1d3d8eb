//go:build !race

package loader_test

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/penstock/penstock/loader"
)

// Buffers of some size are asked for in large pages.
func TestBuffersAreAskedForInHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skipf("this kernel has no transparent huge pages: %v", err)
	}
	ld := open(t, newMemorySource(1000, 10_000), loader.Options{BatchSize: 100, Workers: 1, Order: loader.Shuffle{}})
	next, stop := pull(ld)
	defer stop()
	b := next(t)
	checkBatch(t, b)
	flags := flagsAt(t, uintptr(unsafe.Pointer(unsafe.SliceData(b.Field("x").Bytes()))))
	if !slices.Contains(flags, "hg") {
		t.Errorf("the memory's flags are %v, without hg", flags)
	}
}

// flagsAt returns what the kernel says of the mapping that holds an address.
func flagsAt(t *testing.T, address uintptr) []string {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skipf("this system does not tell of its mappings: %v", err)
	}
	defer f.Close()
	here := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			here = from <= address && address < to
		}
		if list, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && here {
			return strings.Fields(list)
		}
	}
	t.Skip("this system does not tell the flags of its mappings")
	return nil
}
