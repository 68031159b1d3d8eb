package write

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/vfs"
)

// Folder is the open folder of a [Stage]. All files of a build are made through it.
type Folder struct {
	path   string // for messages
	root   *os.Root
	handle *os.File // see Through
}

// makeFolder makes the folder at path, which is in parent, or opens an existing one.
func makeFolder(parent *os.Root, path string) (*Folder, error) {
	root, err := private.Make(parent, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	handle, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Folder{path: path, root: root, handle: handle}, nil
}

func (f *Folder) close() error { return errors.Join(f.root.Close(), f.handle.Close()) }

// clear removes all files except the files in keep. The journal goes first, and durably, as it lists the others: after
// a crash in between, no build is resumed with files that are missing.
func (f *Folder) clear(keep map[string]bool) error {
	if !keep[JournalName] {
		if err := f.drop(JournalName); err != nil {
			return err
		}
	}
	return private.Empty(f.root, slices.Collect(maps.Keys(keep))...)
}

// drop removes a file of the stage durably, if it exists.
func (f *Folder) drop(name string) error {
	err := f.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, f.sync())
}

// sync waits until the names of the files in the folder are on disk. Syncing a file does not sync its name.
func (f *Folder) sync() error { return SyncRoot(f.root) }

// Root returns the open folder itself, which the Stage closes.
func (f *Folder) Root() *os.Root { return f.root }

// Reopen opens a file of the folder for reading and writing. A finished file is read-only, and is made writable first.
func (f *Folder) Reopen(name string) (*os.File, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		if err := f.root.Chmod(name, info.Mode().Perm()|0o200); err != nil {
			return nil, err
		}
	}
	return f.root.OpenFile(name, os.O_RDWR, 0)
}

// Create makes a new file in the folder, or in a folder inside it.
func (f *Folder) Create(name string) (*os.File, error) {
	return private.Create(f.root, name, 0o666)
}

// Link gives a finished file of the same user, which must be on disk, a second name in the stage. A file that cannot be
// linked, as between file systems, is copied, and the copy is synced.
func (f *Folder) Link(path, name string) error {
	if os.Link(path, f.Through(name)) == nil {
		return nil
	}
	from, err := vfs.OpenRegular(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return errors.Join(err, to.Close())
	}
	return SyncFile(to)
}

// Through returns a path of a file in the stage that leads through the open folder, where the system has such paths
// (Linux). The path leads to this stage even if folders above it are renamed. It serves libraries that accept only
// paths, and is valid in this process until the stage is closed.
func (f *Folder) Through(name string) string {
	if dir := private.Through(f.handle); dir != "" {
		return filepath.Join(dir, name)
	}
	return f.Path(name)
}

// Path returns the path of a file in the stage, for messages.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// WriteFile writes a read-only file and waits until it is on disk.
func (f *Folder) WriteFile(name string, data []byte) error {
	return stagedFiles{Folder: f}.write(name, data)
}

// stagedFiles are the files of shards in a stage.
type stagedFiles struct {
	*Folder
	scratch bool // the files are copied and then removed, and need not be on disk
}

// write creates a file with that content and completes it.
func (f stagedFiles) write(name string, data []byte) error {
	to, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := to.Write(data); err != nil {
		to.Close()
		return err
	}
	return f.complete(to)
}

// complete closes a file. Unless the files are scratch, the file is on disk and read-only then.
func (f stagedFiles) complete(file *os.File) error {
	if f.scratch {
		return file.Close()
	}
	return SyncFile(file)
}

// SyncFile waits until f is on disk, removes all write permissions, and closes f. A finished file never changes:
// generations list its checksum, and readers have it mapped.
func SyncFile(f *os.File) error {
	err := f.Sync()
	if info, statErr := f.Stat(); statErr != nil {
		err = errors.Join(err, statErr)
	} else {
		err = errors.Join(err, f.Chmod(info.Mode().Perm()&0o444))
	}
	return errors.Join(err, f.Close())
}

// SyncRoot waits until the names in a folder are on disk.
func SyncRoot(folder *os.Root) error {
	d, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return ignoreNoSync(d.Sync())
}

// widen gives the folder the permissions that a new folder gets here. A staging directory is closed to other users, and
// a published dataset should not be. A trial folder shows what the umask and the access list of the place give.
func (f *Folder) widen() error {
	const like = "build.mode"
	if err := f.root.Mkdir(like, 0o777); err != nil {
		return err
	}
	info, err := f.root.Lstat(like)
	if err = errors.Join(err, f.root.Remove(like)); err != nil {
		return err
	}
	return f.root.Chmod(".", info.Mode())
}

// removeIfThere removes a file. A missing file is no error, since a kill may have come at any step.
func removeIfThere(folder *os.Root, name string) error {
	if err := folder.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// JournalName is the file of a stage that records how far a build can be resumed.
const JournalName = "build.journal"
