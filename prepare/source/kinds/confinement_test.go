package kinds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// Paths in tables lead to no file outside of the table's folder, unless that is asked for; neither do links.
func TestTablesStayInTheirFolder(t *testing.T) {
	top := t.TempDir()
	dir, secret := filepath.Join(top, "data"), filepath.Join(top, "id_rsa")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "in"), 0o777), os.WriteFile(secret, []byte("SECRET"), 0o600),
		os.WriteFile(filepath.Join(dir, "in", "a.png"), []byte("PIXELS"), 0o666))
	require.NoError(t, err)
	if err := errors.Join(os.Symlink(secret, filepath.Join(dir, "link.png")), os.Symlink(top, filepath.Join(dir, "up")), os.Symlink("in/a.png", filepath.Join(dir, "own.png"))); err != nil {
		t.Skip("no links here: ", err)
	}
	good := []string{"in/a.png", "own.png", filepath.Join(dir, "in/a.png"), "in/../in/a.png"}
	bad := []string{"../id_rsa", secret, "link.png", "up/id_rsa", "in/../../id_rsa", "/proc/self/environ"}
	csv, jsonl := "photo\n", ""
	for _, path := range append(good, bad...) {
		csv += path + "\n"
		jsonl += fmt.Sprintf("{\"photo\": %q}\n", path)
	}
	for name, text := range map[string]string{"x.csv": csv, "x.jsonl": jsonl} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
		_, samples, err := describe(t, filepath.Join(dir, name), source.Options{Fields: "photo:image"})
		if err != nil || len(samples) != len(good)+len(bad) {
			t.Fatalf("%s: %q, %v", name, samples, err)
		}
		for i, s := range samples {
			if i < len(good) && !strings.Contains(s, fmt.Sprintf("%x", "PIXELS")) {
				t.Errorf("%s: %s: %s", name, good[i], s)
			}
			if i >= len(good) && (!strings.Contains(s, vfs.ErrOutside.Error()) || strings.Contains(s, fmt.Sprintf("%x", "SECRET"))) {
				t.Errorf("%s: %s: %s", name, bad[i-len(good)], s)
			}
		}
		_, samples, err = describe(t, filepath.Join(dir, name), source.Options{Fields: "photo:image", Outside: true})
		if err != nil || !strings.Contains(samples[len(good)], fmt.Sprintf("%x", "SECRET")) {
			t.Errorf("%s: with Outside: %q, %v", name, samples, err)
		}
	}
}

// Links in a folder of images stay in it, too.
func TestImageFolderStaysInside(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "photos")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "cat"), 0o777), os.WriteFile(filepath.Join(top, "id_rsa"), []byte("SECRET"), 0o600),
		os.WriteFile(filepath.Join(dir, "cat", "a.jpg"), []byte("PIXELS"), 0o666))
	require.NoError(t, err)
	if err := errors.Join(os.Symlink(filepath.Join(top, "id_rsa"), filepath.Join(dir, "cat", "b.jpg")), os.Symlink("a.jpg", filepath.Join(dir, "cat", "c.jpg"))); err != nil {
		t.Skip("no links here: ", err)
	}
	_, samples, err := describe(t, dir, source.Options{})
	if err != nil || len(samples) != 3 || !strings.Contains(samples[1], vfs.ErrOutside.Error()) || !strings.Contains(samples[2], fmt.Sprintf("%x", "PIXELS")) {
		t.Errorf("%q, %v", samples, err)
	}
	require.NoError(t, os.Symlink(top, filepath.Join(dir, "dog")))
	if _, _, err := describe(t, dir, source.Options{}); !errors.Is(err, vfs.ErrOutside) {
		t.Errorf("got %v", err)
	}
}
