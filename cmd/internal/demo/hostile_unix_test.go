//go:build unix

package demo

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// The demo has a well-known name. Links that somebody has put there are refused, and a file that is a link is
// replaced, so that its target stays as it is.
func TestDemoFollowsNoLink(t *testing.T) {
	for _, at := range []string{"penstock-demo", "penstock-demo/raw", "penstock-demo/raw/cross", "penstock-demo/raw/cross/0000.png"} {
		t.Run(filepath.Base(at), func(t *testing.T) {
			dir, target := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(target, "0000.png"), []byte("the only copy"), 0o600))
			want := foldertest.Files(t, target)
			leads, file := target, filepath.Ext(at) != ""
			if file {
				leads = filepath.Join(target, "0000.png")
			}
			path := filepath.Join(dir, at)
			require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(leads, path)))
			if at != "penstock-demo" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "penstock-demo", made), nil, 0o600))
			}
			err := draw(filepath.Join(dir, "penstock-demo"))
			if file && err != nil || !file && !errors.Is(err, private.ErrForeign) {
				t.Errorf("got %v", err)
			}
			if got := foldertest.Files(t, target); !maps.Equal(got, want) {
				t.Errorf("files outside were changed: %d, were %d", len(got), len(want))
			}
		})
	}
}
