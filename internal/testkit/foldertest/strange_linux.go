package foldertest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/require"
)

// Strange puts something else in the place of a file or folder. It returns false for what this system cannot make.
func Strange(t testing.TB, how, path, outside string) bool {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	var err error
	switch how {
	case "link":
		err = os.Symlink(outside, path)
	case "relative link":
		var rel string
		if rel, err = filepath.Rel(filepath.Dir(path), outside); err == nil {
			err = os.Symlink(rel, path)
		}
	case "link by a link":
		if err = os.Symlink(outside, path+".2"); err == nil {
			err = os.Symlink(filepath.Base(path)+".2", path)
		}
	case "link to /dev/zero":
		err = os.Symlink("/dev/zero", path)
	case "pipe":
		err = unix.Mkfifo(path, 0o666)
	case "socket":
		err = unix.Mknod(path, unix.S_IFSOCK|0o666, 0)
	case "device":
		if err = unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err == unix.EPERM {
			return false
		}
	case "folder":
		err = os.Mkdir(path, 0o777)
	}
	require.NoError(t, err)
	return true
}

// StrangeWays are what Strange puts there, and "swap", which is for Exchange.
var StrangeWays = []string{"link", "relative link", "link by a link", "link to /dev/zero", "pipe", "socket", "device",
	"folder", "swap"}

// Exchange exchanges two paths at random instants until stop is called.
func Exchange(t *testing.T, a, b string, seed uint64) (stop func()) {
	end, wait := make(chan struct{}), sync.WaitGroup{}
	rng := rand.New(rand.NewPCG(seed, 1))
	wait.Go(func() {
		for {
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-end:
				return
			case <-time.After(time.Duration(rng.IntN(60)) * time.Microsecond):
			}
		}
	})
	return func() { close(end); wait.Wait() }
}
