//go:build unix

package guardpage

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
)

// guarded returns n bytes before the page that ends a mapping, and n after the one that begins it.
func guarded(t testing.TB, n int) (before, after []byte) {
	t.Helper()
	page := unix.Getpagesize()
	inner := (n + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	for _, p := range [][]byte{mem[:page], mem[page+inner:]} {
		require.NoError(t, unix.Mprotect(p, unix.PROT_NONE))
	}
	in := mem[page : page+inner]
	return in[inner-n : inner : inner], in[0:n:n]
}
