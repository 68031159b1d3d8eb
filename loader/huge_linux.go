//go:build !race

package loader

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hugePages asks for large pages, so that a buffer is not taken from the system in thousands of
// faults, and a core keeps track of it while it writes here and there. It is a hint: the system
// gives those that it has free. hugePages returns why it gives none.
func hugePages(b []byte) (why string) {
	if err := unix.Madvise(b, unix.MADV_HUGEPAGE); err != nil {
		return fmt.Sprintf("madvise for large pages: %v: this kernel has none", err)
	}
	return hugeSetting(hugeFolder)
}

// hugeFolder has the system's settings, but in tests.
var hugeFolder = "/sys/kernel/mm/transparent_hugepage"

// hugeSetting returns why the settings in a folder give no large page to memory that asks for
// them, "" if they do: those of one size of page, where there are such, go before the one of all.
// See Documentation/admin-guide/mm/transhuge.rst of Linux.
func hugeSetting(folder string) (why string) {
	path := filepath.Join(folder, "enabled")
	all, err := chosen(path)
	if err != nil {
		return fmt.Sprintf("whether there are large pages is not known: %v", err)
	}
	sizes, _ := filepath.Glob(filepath.Join(folder, "hugepages-*", "enabled")) // of a good pattern
	for _, size := range sizes {
		if one, err := chosen(size); err == nil && gives(one, all) {
			return ""
		}
	}
	switch {
	case all == "never":
		return path + " is [never]: [madvise] gives large pages to those who ask"
	case len(sizes) > 0:
		return fmt.Sprintf("%s are [never], for every size: [inherit] goes by %s", filepath.Join(folder, "hugepages-*", "enabled"), path)
	}
	return ""
}

// gives reports whether a size of pages with that setting is given to memory that asks, where the
// setting of all sizes is the other.
func gives(one, all string) bool {
	return one == "always" || one == "madvise" || one == "inherit" && all != "never"
}

// chosen returns the word of a setting that is in brackets.
func chosen(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(text), "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok {
		return "", fmt.Errorf("%s: %q has no word in brackets", path, text)
	}
	return word, nil
}
