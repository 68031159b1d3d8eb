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

// Owns reports whether a file name in a mirror's folder belongs to the mirror and not to the
// dataset. Verification of a mirror as a local dataset ignores these files.
func Owns(name string) bool { return name == stateName || name == metadataName || name == arrivedName }

// files are the files of a mirror, in its folder.
type files struct {
	dir  string // the folder
	path string // path of the dataset in the folder
	root *os.Root
	hdf5 *os.File // open file of an HDF5 dataset
}

// close closes the open files and the folder.
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

// readAt fills p with bytes of the dataset from the mirror's files, even if blocks held in memory replace them.
func (m *files) readAt(path string, p []byte, off int64) error {
	if path != m.path || m.hdf5 == nil {
		return m.readFile(path, p, off)
	}
	_, err := m.hdf5.ReadAt(p, off)
	return err
}

// name returns the name in the mirror of the file at a path.
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

// readAll reads at most size bytes of a file of the mirror.
func (m *files) readAll(name string, size int64) ([]byte, error) {
	f, err := m.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, size))
}

// write writes bytes into an existing file.
func (m *files) write(name string, off int64, data []byte) error {
	f, err := m.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(data, off)
	return err
}

// stretch gives a file its length and keeps its content: another process may have the file mapped.
func (m *files) stretch(name string, size int64) error {
	f, err := m.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// alone runs do while no other process sets up the mirror, which has no state yet.
func (m *files) alone(do func(lock locks) error) error {
	state, err := m.root.OpenFile(stateName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer state.Close()
	lock := locks{state}
	return lock.setup(m.dir, func() error { return do(lock) })
}

// setup runs do while no other process sets up the mirror.
func (l locks) setup(dir string, do func() error) error {
	if !l.wait(lockSetup, 1, setupLimit) {
		return fmt.Errorf("%s: another process has been setting it up for %v", dir, setupLimit)
	}
	defer l.free(lockSetup, 1)
	return do()
}

// makeCache makes the folder of all mirrors. It refuses a folder that other users may write to: they could replace
// blocks that were already checked.
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

// openFolder makes and opens the folder of a mirror, which must have files of this user alone. Only files inside of it
// can be opened through the result.
func openFolder(dir string) (*os.Root, error) {
	parent, name, err := private.Parent(dir)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return private.MakeTrusted(parent, name)
}

// folderName returns the name of a mirror's folder: the same for the same content from the same place, so that
// processes share a mirror and a changed dataset gets a new mirror.
func folderName(parts ...string) string {
	sum := sha256.Sum256([]byte(stateMagic + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// sparse makes a file with a header and zeros after it, which take no disk space.
func sparse(root *os.Root, name string, size int64, header []byte) error {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(header, 0)
	return errors.Join(err, f.Truncate(size), f.Close())
}

// merge sorts ranges of blocks and joins adjacent ranges.
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

// arrivedName is the file of a mirror with the CRC32Cs that blocks had on arrival, 4 bytes each, by the number of the
// block, for blocks of which the dataset has no checksums. A checksum is written after its block, and before the block
// is marked as present.
const arrivedName = "arrived"

// hdf5Name is the file of a mirror of an HDF5 file.
const hdf5Name = "data.h5"

// metadataName is the file that lists the parts of an HDF5 file that Open has fetched, so that a later process need not
// fetch them again. The first line is the CRC32C of all parts, in 8 hex digits, and their number. Then comes a line for
// each part, with its offset and its length.
const metadataName = "metadata"
