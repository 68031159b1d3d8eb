//go:build unix

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
)

// An option that names a pipe, a device or a huge file is refused at once.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	pipe, large, small := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "small")
	err := errors.Join(unix.Mkfifo(pipe, 0o600), os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<40), os.WriteFile(small, []byte("x"), 0o600))
	require.NoError(t, err)
	for path, want := range map[string]string{pipe: "named pipe", large: "too large", dir: "folder", os.DevNull: "device"} {
		if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := ReadFile(small); string(text) != "x" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	require.NoError(t, errors.Join(func() error { _, err := write.WriteString("piped"); return err }(), write.Close()))
	if text, err := ReadFile(fmt.Sprintf("/dev/fd/%d", read.Fd())); string(text) != "piped" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := WriteFile(pipe, func(io.Writer) error { return nil }); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a pipe that nobody reads: %v", err)
	}
}
