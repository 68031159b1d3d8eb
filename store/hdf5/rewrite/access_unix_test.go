//go:build unix

package rewrite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/hdf5"
)

// Whoever could not read the old file cannot read the new one, and other names of the old file keep it.
func TestAccessStays(t *testing.T) {
	for _, mode := range []os.FileMode{0o400, 0o600, 0o640, 0o444} {
		path := filepath.Join(t.TempDir(), "ds.h5")
		c := begin(t, path, hdf5.Options{}, pages, labels)
		uid, gid := os.Geteuid(), os.Getegid()
		if uid == 0 {
			uid, gid = 1234, 4321
		}
		other := filepath.Join(filepath.Dir(path), "other.h5")
		require.NoError(t, errors.Join(os.Chmod(path, mode), os.Chown(path, uid, gid), os.Link(path, other)))
		one := content{fields: c.fields[1:], values: c.values, splits: c.splits}
		for _, change := range []func(){
			func() {
				if _, err := DropColumn(path, []string{"pages"}, Options{}); err != nil {
					t.Error(err)
				}
			},
			func() { build(t, path, one, hdf5.Options{Append: true}) },
			func() { build(t, path, one, hdf5.Options{Overwrite: true}) },
		} {
			change()
			info, err := os.Stat(path)
			require.NoError(t, err)
			st := info.Sys().(*syscall.Stat_t)
			if info.Mode().Perm() != mode || int(st.Uid) != uid || int(st.Gid) != gid {
				t.Errorf("%v, owner %d, group %d, want %v, %d, %d", info.Mode(), st.Uid, st.Gid, mode, uid, gid)
			}
		}
		if err := is(other, c); err != nil {
			t.Errorf("another name of the old file: %v", err)
		}
	}
}

// A program that takes no locks changes the file while the new one is written: nothing of that is lost.
func TestChangedMeanwhile(t *testing.T) {
	for name, opts := range kinds {
		path := filepath.Join(t.TempDir(), "ds.h5")
		begin(t, path, opts, pages, labels)
		values := valuesOf(score, 1, records)
		var changed []byte
		progress := func(int64) {
			require.NoError(t, os.Chmod(path, 0o600))
			f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
			if err == nil {
				_, err = f.Write([]byte("more"))
				err = errors.Join(err, f.Close())
			}
			require.NoError(t, err)
			if changed, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := AddColumn(path, score, from(values, -1), Options{Progress: progress}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
		if is, err := os.ReadFile(path); err != nil || string(is) != string(changed) {
			t.Errorf("%s: what the program wrote is lost: %v", name, err)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
}
