package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello")
	return err
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for range 2 { // the second replaces the first
		require.NoError(t, WriteFile(path, hello))
	}
	failure := errors.New("no more ink")
	if err := WriteFile(path, func(io.Writer) error { return failure }); !errors.Is(err, failure) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(path); string(data) != "hello" {
		t.Errorf("after a failure the file holds %q, %v", data, err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "b"), hello); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// CheckWrite fails where WriteFile would, and leaves no file behind.
func TestCheckWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.png")
	for range 2 { // the second finds a file
		require.NoError(t, CheckWrite(path))
		require.NoError(t, WriteFile(path, hello))
	}
	if err := CheckWrite(dir); err == nil || !strings.HasSuffix(err.Error(), "it is a folder; name a file in it") {
		t.Errorf("got %v", err)
	}
	none := filepath.Join(dir, "none", "b")
	if err := CheckWrite(none); err == nil || err.Error() != WriteFile(none, hello).Error() {
		t.Errorf("got %v", err)
	}
	require.NoError(t, CheckWrite(os.DevNull))
	if data, err := os.ReadFile(path); string(data) != "hello" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEndsIn(t *testing.T) {
	for name, want := range map[string]string{"a.PNG": "", "a.svg": "", "a.png.gz": `--plot "a.png.gz": its name must end in .svg or .png`, "png": `--plot "png": its name must end in .svg or .png`} {
		if got := strings.Join(EndsIn("--plot", name, ".svg", ".png"), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A device must stay a device, even if root runs the command.
func TestWriteFileKeepsDevices(t *testing.T) {
	before, err := os.Stat(os.DevNull)
	if err != nil || before.Mode().IsRegular() {
		t.Skipf("no null device at %s: %v", os.DevNull, err)
	}
	require.NoError(t, WriteFile(os.DevNull, hello))
	after, err := os.Stat(os.DevNull)
	if err != nil || after.Mode() != before.Mode() {
		t.Errorf("it was %v and is %v, %v", before.Mode(), after.Mode(), err)
	}
}

// The file that is renamed at the end cannot be prepared by somebody else: its name is not known.
func TestWriteFileFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "thesis"), filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(target, []byte("the only copy"), 0o666))
	if err := os.Symlink(target, filepath.Join(dir, fmt.Sprintf(".a.%d.partial", os.Getpid()))); err != nil {
		t.Skip("no links here: ", err)
	}
	require.NoError(t, errors.Join(CheckWrite(path), WriteFile(path, hello)))
	var names [2]string
	for i := range names {
		err := WriteFile(path, func(w io.Writer) error {
			names[i] = w.(*os.File).Name()
			return nil
		})
		require.NoError(t, err)
	}
	if names[0] == names[1] {
		t.Errorf("the name %s can be guessed", names[0])
	}
	if data, err := os.ReadFile(target); string(data) != "the only copy" {
		t.Errorf("%q, %v: written through a link", data, err)
	}
}
