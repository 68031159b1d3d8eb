//go:build unix

package folder

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"golang.org/x/sys/unix"
)

// Opening a named pipe would block for ever.
func TestNamedPipe(t *testing.T) {
	root := tree(t, "cat/a.jpg")
	for _, name := range []string{"pipe.jpg", "pipe"} {
		if err := unix.Mkfifo(filepath.Join(root, "cat", name), 0o666); err != nil {
			t.Skipf("no named pipes here: %v", err)
		}
	}
	info, names := samplesOf(t, root)
	if !slices.Equal(names, []string{"0 cat/a.jpg", "0 cat/pipe.jpg"}) || info.Ignored.Count != 1 {
		t.Errorf("samples %q, ignored %+v", names, info.Ignored)
	}
	s, err := open(t, root)
	require.NoError(t, err)
	for sample := range s.Samples() {
		if err := sample.Data.Read(source.NewValues(2)); (err != nil) != strings.Contains(sample.Name, "pipe") {
			t.Errorf("%s: %v", sample.Name, err)
		}
	}
}
