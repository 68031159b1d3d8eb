//go:build !race

package loader_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/loader"
)

// Buffers of some size are asked for in large pages, whatever the system's setting.
func TestBuffersAreAskedForInHugePages(t *testing.T) {
	tellsHugePages(t)
	ld := open(t, newMemorySource(1000, 10_000), loader.Options{BatchSize: 100, Workers: 1, Order: loader.Shuffle{}})
	next, stop := pull(ld)
	defer stop()
	b := next(t)
	checkBatch(t, b)
	if flags := flagsAt(t, b.Field("x").Bytes()); !slices.Contains(flags, "hg") {
		t.Errorf("the memory's flags are %v, without hg", flags)
	}
}

// tellsHugePages skips the test unless the system shows which memory was asked for in large pages.
func tellsHugePages(t *testing.T) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.Madvise(mem, unix.MADV_HUGEPAGE); err != nil {
		t.Skipf("this kernel has no transparent huge pages: %v", err)
	}
	if flags := flagsAt(t, mem); !slices.Contains(flags, "hg") {
		t.Skipf("this system does not tell what was asked for: the flags of a mapping are %v", flags)
	}
}

// Stats says why buffers are in ordinary pages, by the settings of the system.
func TestSmallPagesBySetting(t *testing.T) {
	for _, c := range []struct {
		all   string
		sizes map[string]string
		want  string
	}{
		{all: "[always] madvise never"},
		{all: "always [madvise] never"},
		{all: "always madvise [never]", want: "is [never]"},
		{all: "", want: "has no word in brackets"},
		{all: "always [madvise] never", sizes: map[string]string{"2048kB": "always [inherit] madvise never", "64kB": "always inherit madvise [never]"}},
		{all: "[always] madvise never", sizes: map[string]string{"2048kB": "always inherit madvise [never]", "64kB": "always inherit madvise [never]"}, want: "[never], for every size"},
		{all: "always madvise [never]", sizes: map[string]string{"2048kB": "always [inherit] madvise never"}, want: "is [never]"},
		{all: "always madvise [never]", sizes: map[string]string{"2048kB": "always inherit [madvise] never"}},
		{all: "always madvise [never]", sizes: map[string]string{"2048kB": "[always] inherit madvise never"}},
	} {
		folder := t.TempDir()
		writeSetting(t, folder, c.all)
		for size, text := range c.sizes {
			writeSetting(t, filepath.Join(folder, "hugepages-"+size), text)
		}
		why := loader.HugeSetting(folder)
		if !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, why)
		}
		if why != "" && !strings.Contains(why, folder) {
			t.Errorf("%+v: %q does not name what to change", c, why)
		}
	}
	if why := loader.HugeSetting(t.TempDir()); !strings.Contains(why, "is not known") {
		t.Errorf("without a setting: %q", why)
	}
}

func writeSetting(t *testing.T, folder, text string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "enabled"), []byte(text+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Stats goes by the setting that there is when buffers are allocated, Locked or not.
func TestSmallPagesOfTheProcess(t *testing.T) {
	tellsHugePages(t)
	for _, c := range []struct{ setting, want string }{{"always [madvise] never", ""}, {"always madvise [never]", "is [never]"}} {
		folder := t.TempDir()
		writeSetting(t, folder, c.setting)
		t.Cleanup(loader.SetHugeFolder(folder))
		for _, memory := range []loader.Memory{nil, &loader.Locked{}} {
			ld := open(t, newMemorySource(1000, 10_000), loader.Options{BatchSize: 100, Workers: 1, Order: loader.Shuffle{}, Memory: memory})
			if why := ld.Stats().SmallPages; why != "" {
				t.Errorf("without buffers: %q", why)
			}
			visit(t, ld, 0)
			if why := ld.Stats().SmallPages; !strings.Contains(why, c.want) || (why == "") != (c.want == "") {
				t.Errorf("%q, memory %T: %q", c.setting, memory, why)
			}
		}
	}
}

// flagsAt returns what the kernel says of the mapping that holds the start of b.
func flagsAt(t *testing.T, b []byte) []string {
	t.Helper()
	address := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
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
