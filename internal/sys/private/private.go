// Package private creates and opens folders under names that other users of the machine can guess,
// such as the folder next to a destination in which a dataset is built. Such a user may have put a
// link, a folder of theirs or a file there before, and if a folder is writable for several users
// and not sticky, they may rename or replace its entries at any time.
//
// So a folder is created with mode 0700, an existing one must be a real folder that this user owns,
// and then all work is done through an [os.Root] of it, which no later renaming can redirect.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// ErrForeign is the error of a folder or file that has the wanted name and cannot be used, as another user
// may have put it there.
var ErrForeign = errors.New("it may be another user's work")

// Parent opens the folder that path is in, and returns the name that path has in it. The caller closes it.
func Parent(path string) (parent *os.Root, name string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, "", err
	}
	parent, err = os.OpenRoot(filepath.Dir(path))
	return parent, filepath.Base(path), err
}

// Unwritable names the folder in an error of making something in it, and not that, whose name users do not know.
func Unwritable(folder *os.Root, err error) error {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err
	}
	err = fmt.Errorf("nothing can be made in the folder %s: %w", folder.Name(), p.Err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w; choose one that you may write to", err)
	}
	return err
}

// Make creates the folder name in parent with mode 0700 and opens it. An existing folder is opened as by [Open].
func Make(parent *os.Root, name string) (*os.Root, error) {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, Unwritable(parent, err)
	}
	return Open(parent, name)
}

// MakeTrusted is Make for a folder whose files are used as they are found. It is [ErrForeign] if others may write to
// it, or if another user's file is in it.
func MakeTrusted(parent *os.Root, name string) (*os.Root, error) {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, Unwritable(parent, err)
	}
	folder, err := Own(parent, name)
	if err != nil {
		return nil, err
	}
	if err := narrow(folder, 0o022); err != nil {
		return nil, err
	}
	if err := ownFiles(folder); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// ownFiles refuses a folder with a file that has another owner than the folder.
func ownFiles(folder *os.Root) error {
	owner, err := folder.Stat(".")
	if err != nil {
		return err
	}
	return fs.WalkDir(folder.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !sameOwner(info, owner) {
			err = fmt.Errorf("%s belongs to another user: %w; remove %s", filepath.Join(folder.Name(), name), ErrForeign,
				folder.Name())
		}
		return err
	})
}

// Open opens the folder name in parent. It must be a real folder, not a link, and belong to this user;
// otherwise the error is [ErrForeign]. If others may write to it, they may not from now on.
func Open(parent *os.Root, name string) (*os.Root, error) {
	folder, err := Own(parent, name)
	if err != nil {
		return nil, err
	}
	info, err := folder.Stat(".")
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	if modes && info.Mode().Perm()&0o022 != 0 {
		_ = folder.Chmod(".", info.Mode().Perm()&^0o022) // some file systems have one mode for all
	}
	return folder, nil
}

// Own opens the folder name in parent as [Open] does, and does not change its mode.
func Own(parent *os.Root, name string) (*os.Root, error) {
	folder, err := Real(parent, name)
	if err != nil {
		return nil, err
	}
	if err := own(folder); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// Real opens the folder name in parent, which must not be a link. It may belong to anybody.
func Real(parent *os.Root, name string) (folder *os.Root, err error) {
	for range 10 { // another process may replace the folder in between
		if folder, err = openReal(parent, name); !errors.Is(err, errReplaced) {
			break
		}
	}
	return folder, err
}

var errReplaced = fmt.Errorf("was changed while it was opened: %w", ErrForeign)

// openReal opens a folder that is no symbolic link, and checks that the opened folder is the folder that was checked
// before: in a shared folder such as /tmp, another user could put a link there in between.
func openReal(parent *os.Root, name string) (*os.Root, error) {
	path := filepath.Join(parent.Name(), name)
	info, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder but a %s: %w; remove it, or choose another name", path, kind(info),
			ErrForeign)
	}
	folder, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(fmt.Errorf("%s %w", path, errReplaced), err, folder.Close())
	}
	return folder, nil
}

func kind(info fs.FileInfo) string {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return "symbolic link"
	case info.Mode().IsRegular():
		return "file"
	}
	return "special file"
}

// own refuses a folder of another user: who owns a folder can exchange the files in it at any time.
func own(folder *os.Root) error {
	info, err := folder.Stat(".")
	if err != nil {
		return err
	}
	if !mine(folder, info) {
		return fmt.Errorf("%s belongs to another user: %w; choose another name, or have it removed", folder.Name(),
			ErrForeign)
	}
	return nil
}

// mine reports whether a file that is in folder, or folder itself, belongs to this user.
func mine(folder *os.Root, info fs.FileInfo) bool {
	if owned(info) {
		return true
	}
	// File systems of networks and containers may give users other numbers: a new file says which.
	probe, err := probe(folder)
	return err == nil && sameOwner(info, probe)
}

// probe makes a file in a folder, and returns its owner and mode as the file system has set them.
func probe(folder *os.Root) (fs.FileInfo, error) {
	f, name, err := CreateTemp(folder, ".penstock-", 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close(), folder.Remove(name))
}

// CreateTemp makes a new file for reading and writing, whose name begins with prefix and cannot be guessed.
func CreateTemp(folder *os.Root, prefix string, mode fs.FileMode) (*os.File, string, error) {
	for {
		name := prefix + strconv.FormatUint(rand.Uint64(), 36)
		f, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, name, Unwritable(folder, err)
		}
	}
}

// Replace writes data to the file name. Readers never see a part of it: the old content stays until all of data is
// written.
func Replace(folder *os.Root, name string, mode fs.FileMode, data ...[]byte) error {
	f, temporary, err := CreateTemp(folder, name+".", mode)
	if err != nil {
		return err
	}
	for _, part := range data {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = Move(folder, temporary, folder, name)
	}
	if err != nil {
		_ = folder.Remove(temporary)
	}
	return err
}

// Create makes a new file for reading and writing. A file with its name is removed, not written to: it could
// be a link to another file.
func Create(folder *os.Root, name string, mode fs.FileMode) (*os.File, error) {
	for {
		f, err := folder.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		if err := folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// OpenLock opens the file name, which it makes if it is not there, to lock it. It follows no link, and a file of
// another user, who could remove it at any time, is ErrForeign.
func OpenLock(folder *os.Root, name string) (*os.File, error) {
	f, err := folder.OpenFile(name, os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return nil, Unwritable(folder, err)
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file: %w", filepath.Join(folder.Name(), name), ErrForeign),
			err, f.Close())
	}
	if !mine(folder, info) {
		return nil, errors.Join(fmt.Errorf("%s belongs to another user: %w; choose another name, or have it removed",
			filepath.Join(folder.Name(), name), ErrForeign), f.Close())
	}
	return f, nil
}

// Same reports whether name in parent is still the open folder.
func Same(parent *os.Root, name string, folder *os.Root) bool {
	there, err := parent.Lstat(name)
	if err != nil {
		return false
	}
	own, err := folder.Stat(".")
	return err == nil && os.SameFile(there, own)
}

// Entries returns the names in a folder.
func Entries(folder *os.Root) ([]string, error) {
	d, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Empty removes everything in an open folder but what keep names. It follows no links.
func Empty(folder *os.Root, keep ...string) error {
	names, err := Entries(folder)
	if err != nil {
		return err
	}
	kept := make(map[string]bool)
	for _, k := range keep {
		kept[k] = true
	}
	var errs []error
	for _, name := range names {
		if !kept[name] {
			errs = append(errs, folder.RemoveAll(name))
		}
	}
	return errors.Join(errs...)
}

// Remove removes an open folder and all that is in it, through the handle: if name in parent has become
// something else, that is left alone and the error is [ErrForeign]. It leaves folder open.
func Remove(parent *os.Root, name string, folder *os.Root) error {
	if err := Empty(folder); err != nil {
		return err
	}
	if !Same(parent, name, folder) {
		return fmt.Errorf("%s was changed by somebody else: %w; it is left as it is", filepath.Join(parent.Name(), name),
			ErrForeign)
	}
	return parent.Remove(name) // of an empty folder only
}

// CheckOwner reports whether the folder name in parent belongs to this user. It may be a link of this user's.
func CheckOwner(parent *os.Root, name string) error {
	info, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	path := filepath.Join(parent.Name(), name)
	if info.Mode()&fs.ModeSymlink != 0 && !owned(info) {
		return fmt.Errorf("%s is a link of another user: %w", path, ErrForeign)
	}
	folder, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	return errors.Join(own(folder), folder.Close())
}

// UserFolder makes the folder "penstock-UID" in a folder that many users may write to, such as the system's for
// temporary files, and opens it. It is for this user alone: an existing one with another owner or a wider mode
// is [ErrForeign], and so is a folder in which others may give things other names.
func UserFolder(folder string) (*os.Root, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	parent, err := openShared(path)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	for range 100 { // another process of this user may remove an empty one
		made := parent.Mkdir(userName(), 0o700)
		if made != nil && !errors.Is(made, fs.ErrExist) {
			return nil, made
		}
		own, err := Own(parent, userName())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && made != nil {
			err = narrow(own, 0o077)
		}
		return own, err
	}
	return nil, fmt.Errorf("%s: it is removed again and again", filepath.Join(path, userName()))
}

// openShared opens a folder, after checking that others cannot rename what a user has in it.
func openShared(path string) (*os.Root, error) {
	folder, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := checkShared(folder); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// FindUserFolder opens the folder of [UserFolder] if it exists, and makes none.
func FindUserFolder(folder string) (*os.Root, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	parent, err := openShared(path)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	own, err := Own(parent, userName())
	if err == nil {
		err = narrow(own, 0o077)
	}
	return own, err
}

// checkShared refuses a folder in which other users may rename what is not theirs.
func checkShared(folder *os.Root) error {
	info, err := folder.Stat(".")
	if err != nil || !modes || info.Mode().Perm()&0o022 == 0 || info.Mode()&fs.ModeSticky != 0 {
		return err
	}
	probe, err := probe(folder)
	if err == nil && probe.Mode().Perm()&0o077 == 0 { // else modes mean nothing here
		err = fmt.Errorf("%s: others may rename folders in it (%v): %w; name a folder that only you can write to",
			folder.Name(), info.Mode(), ErrForeign)
	}
	return err
}

// narrow refuses and closes a folder that gives other users a permission in mask.
func narrow(folder *os.Root, mask fs.FileMode) error {
	info, err := folder.Stat(".")
	if err != nil || !modes || info.Mode().Perm()&mask == 0 {
		return err
	}
	probe, err := probe(folder)
	if err == nil && probe.Mode().Perm()&mask == 0 {
		err = fmt.Errorf("%s: others may use it (%v): %w; remove it", folder.Name(), info.Mode(), ErrForeign)
	}
	if err != nil {
		err = errors.Join(err, folder.Close())
	}
	return err
}

// RemoveOwn removes the folder at path and everything in it, if [Open] would open the folder. A missing
// folder is not an error.
func RemoveOwn(path string) error {
	parent, name, err := Parent(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	folder, err := Open(parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	return Remove(parent, name, folder)
}

// ReadFile returns the content of a file that has the owner of an open folder, is not a link, and is not writable
// for other users.
func ReadFile(folder *os.Root, name string, owner *os.Root) ([]byte, error) {
	f, err := folder.OpenFile(name, os.O_RDONLY|noFollow|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	own, err := owner.Stat(".")
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !sameOwner(info, own) || modes && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s is not a file that only this user can write: %w; remove it",
			filepath.Join(folder.Name(), name), ErrForeign)
	}
	return io.ReadAll(f)
}
