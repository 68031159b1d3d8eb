package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/private"
)

// stateName is the file of a mirror that holds its state.
const stateName = "state"

// Owns reports whether a file of a mirror's folder, by its name, is the mirror's own and not the dataset's.
func Owns(name string) bool { return name == stateName || name == metadataName || name == arrivedName }

// files are the files of a mirror, in its folder.
type files struct {
	dir  string // the folder
	path string // in it, of the dataset
	root *os.Root
	hdf5 *os.File // of an HDF5 dataset
}

// close lets go of them.
func (m *files) close() error {
	var errs []error
	if m.hdf5 != nil {
		errs = append(errs, m.hdf5.Close())
	}
	if m.root != nil {
		errs = append(errs, m.root.Close())
	}
	return errors.Join(errs...)
}

// readAt fills p with bytes of the dataset, whatever is held in memory in their place.
func (m *files) readAt(path string, p []byte, off int64) error {
	if path != m.path || m.hdf5 == nil {
		return m.readFile(path, p, off)
	}
	_, err := m.hdf5.ReadAt(p, off)
	return err
}

// name returns what the file at a path is called in the mirror.
func (m *files) name(path string) string {
	return strings.TrimPrefix(path, m.dir+string(filepath.Separator))
}

// readFile fills p with bytes of a file of the mirror.
func (m *files) readFile(path string, p []byte, off int64) error {
	f, err := m.root.Open(m.name(path))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.ReadAt(p, off)
	return err
}

// readAll reads a file of the mirror that has size bytes.
func (m *files) readAll(name string, size int64) ([]byte, error) {
	f, err := m.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

// write writes bytes of an existing file.
func (m *files) write(name string, off int64, data []byte) error {
	f, err := m.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(data, off)
	return err
}

// stretch gives a file its length, and leaves what it has: another process may have it mapped.
func (m *files) stretch(name string, size int64) error {
	f, err := m.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// alone does what one process at a time may do before the mirror has a state.
func (m *files) alone(do func(lock locks) error) error {
	state, err := m.root.OpenFile(stateName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()
	lock := locks{state}
	return lock.setup(m.dir, func() error { return do(lock) })
}

// setup does in a mirror what one process at a time may do.
func (l locks) setup(dir string, do func() error) error {
	if !l.wait(lockSetup, 1, setupLimit) {
		return fmt.Errorf("%s: another process has been setting it up for %v", dir, setupLimit)
	}
	defer l.free(lockSetup, 1)
	return do()
}

// makeCache makes the folder of all mirrors. No other user may change its content.
func makeCache(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the cache: %w", err)
	}
	parent, name, err := private.Parent(dir)
	if err != nil {
		return fmt.Errorf("the cache: %w", err)
	}
	defer parent.Close()
	if err := private.CheckOwner(parent, name); err != nil {
		return fmt.Errorf("the cache %s: %w", dir, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the cache: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the cache %s: others may write to it (%v), so its content cannot be trusted; chmod go-w %s, or "+
			"name another folder", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// openFolder makes and opens the folder of a mirror, which has files of this user alone. It opens only files inside.
func openFolder(dir string) (*os.Root, error) {
	parent, name, err := private.Parent(dir)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return private.MakeTrusted(parent, name)
}

// folderName returns the name of a mirror: the same for the same content from the same place.
func folderName(parts ...string) string {
	sum := sha256.Sum256([]byte(stateMagic + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// sparse makes a file of zeros that takes no room, with a header.
func sparse(root *os.Root, name string, size int64, header []byte) error {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(header, 0)
	return errors.Join(err, f.Truncate(size), f.Close())
}

// merge joins blocks that lie side by side, whatever their order was.
func merge(ranges []blocks) []blocks {
	slices.SortFunc(ranges, func(a, b blocks) int {
		if n := a.x.base - b.x.base; n != 0 {
			return int(min(1, max(-1, n)))
		}
		return int(min(1, max(-1, a.from-b.from)))
	})
	var out []blocks
	for _, r := range ranges {
		if n := len(out); n > 0 && out[n-1].x == r.x && r.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}

// arrivedName is the file of a mirror with the CRC32Cs that blocks had when they came, by number, 4
// bytes each: of those that the dataset has no checksums of. One is written after its block, and
// before the block is said to be there.
const arrivedName = "arrived"

// hdf5Name is the file of a mirror of an HDF5 file.
const hdf5Name = "data.h5"

// metadataName is the file that lists the parts of an HDF5 file that Open fetched: the CRC32C of
// all of it, in 8 hex digits, and how many parts it has; then a line for each, with its offset and
// its length. A later process does not fetch these parts again.
const metadataName = "metadata"
