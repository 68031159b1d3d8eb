package feed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Files that a client names are those of the protocol, and are open.
func TestInherited(t *testing.T) {
	for _, c := range []struct {
		args, want string // "" for those that may be
	}{
		{"--fd 3 --inherit memory=4", ""},
		{"--fd 3 --inherit memory=4,arrays=5", ""},
		{"--fd 3 --inherit memory=4 --inherit arrays=5", ""},
		{"--fd 3 --inherit arrays=5", "--inherit is for --fd, and takes memory=N"},
		{"--fd 3 --inherit memory=4,x=5", "--inherit x=5: must be memory=N or arrays=N"},
		{"--fd 3 --inherit memory=-4", "--inherit memory=-4: must be"},
		{"--socket s --inherit memory=4", "--inherit is for --fd, and takes memory=N"},
	} {
		cmd := Command()
		require.NoError(t, cmd.ParseFlags(append(strings.Fields(c.args), "ds")))
		err := cmd.PreRunE(cmd, cmd.Flags().Args())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.args, err, c.want)
		}
	}
	folder, err := os.Open(t.TempDir())
	require.NoError(t, err)
	i := inherited{files: map[string]int{"memory": int(folder.Fd())}}
	if _, err := i.openFile("memory"); err == nil || !strings.Contains(err.Error(), "not an open file") { // which closes it
		t.Errorf("a folder as memory: %v", err)
	}
	_ = folder.Close()
}

// The file of shared memory has room for all of an area before the area is used: it is not sparse.
func TestSharedFileHasRoom(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	require.NoError(t, err)
	a := newArena(sharedFile{f})
	for _, n := range []int{1, 3 << 20, 5} {
		b, err := a.Alloc(n)
		require.NoError(t, err)
		if len(b) != n || b[0] != 0 || b[n-1] != 0 {
			t.Errorf("%d bytes of %d: %d ... %d", len(b), n, b[0], b[n-1])
		}
		require.NoError(t, a.drop(b))
	}
	info, err := f.Stat()
	if err != nil || info.Size() != a.bytes() || a.bytes() != 3<<20+2*page {
		t.Errorf("a file of %d bytes, %v; the arena has %d", info.Size(), err, a.bytes())
	}
	require.NoError(t, a.Close())
	readOnly, err := os.Open(f.Name())
	require.NoError(t, err)
	full := newArena(sharedFile{readOnly}) // an error of writing, as that of a full disk
	if _, err := full.Alloc(1); err == nil || !strings.Contains(err.Error(), "allocating 1 bytes of shared memory") {
		t.Error(err)
	}
	require.NoError(t, full.Close())
}
