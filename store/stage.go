package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/private"
)

// Stage is the place beside a destination where a dataset is built: the hidden folder
// ".NAME.building". Publish renames what lies in it to the destination; Abort removes it;
// Release leaves it, for a later build to continue. A lock, which ends with the process,
// keeps a second builder out, and a folder that a killed process left is taken over.
//
// Others may know its name and be allowed to write beside it. So it must be a real folder of this
// user, that nobody else may write to, and all work in it goes through an open handle: see package
// private.
//
// Every writer of this module builds in a Stage. It serves one goroutine.
type Stage struct {
	dest   string
	name   string   // of the folder, in parent
	parent *os.Root // of dest and of the folder
	folder *os.Root // nil until it is open
	handle *os.File // of the folder, see Through
	lock   *os.File
	opts   StageOptions
	done   bool
}

// StageOptions configures OpenStage.
type StageOptions struct {
	Overwrite bool // a dataset that is there is replaced
	Append    bool // a dataset must be there, and gets more
	Keep      bool // what a build left in the stage stays there
}

// NewStage is OpenStage without appending and keeping.
func NewStage(dest string, overwrite bool) (*Stage, error) {
	return OpenStage(dest, StageOptions{Overwrite: overwrite})
}

// OpenStage prepares to build dest. An existing dest is ErrExist unless opts allow it, and
// then it must be something that penstock can know to be a dataset: a folder with a
// manifest, or a file. A dest that is being built is ErrBusy; one to append to that is not
// there is fs.ErrNotExist; ErrCommitted says that what was kept of an append was killed only
// when all was done.
func OpenStage(dest string, opts StageOptions) (*Stage, error) {
	dest, err := filepath.Abs(dest)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dest); opts.Append && err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dest), 0o777); err != nil {
		return nil, err
	}
	s := &Stage{dest: dest, opts: opts, name: filepath.Base(stageDir(dest))}
	if s.parent, err = os.OpenRoot(filepath.Dir(dest)); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Stage) begin() error {
	done, err := s.tidy()
	if err != nil {
		return err
	}
	if done && s.opts.Append && s.opts.Keep {
		return fmt.Errorf("%s: these records are %w", s.dest, ErrCommitted)
	}
	if err := s.checkDest(); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	return s.takeOver()
}

// close lets go of all that is open.
func (s *Stage) close() error {
	err := s.parent.Close()
	if s.folder != nil {
		err = errors.Join(err, s.folder.Close())
	}
	if s.handle != nil {
		err = errors.Join(err, s.handle.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

func stageDir(dest string) string {
	return filepath.Join(filepath.Dir(dest), "."+filepath.Base(dest)+".building")
}

// CheckDest reports what OpenStage would. It leaves everything as it is, but for what a build
// has left that was killed when it had published all: that it removes, as OpenStage does.
func CheckDest(dest string, opts StageOptions) error {
	abs, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	_, err = os.Lstat(stageDir(abs))
	opts.Keep = true
	s, openErr := OpenStage(dest, opts)
	switch {
	case openErr != nil:
		return openErr
	case errors.Is(err, fs.ErrNotExist):
		return s.Abort()
	}
	return s.Release()
}

// Unfinished reports whether a build of dest that can be resumed has been left.
func Unfinished(dest string) bool {
	dest, err := filepath.Abs(dest)
	if err != nil {
		return false
	}
	for _, path := range []string{filepath.Join(stageDir(dest), JournalName), parkedJournal(dest)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// tidy removes what a build left that was killed when it had published all; then it
// reports true.
func (s *Stage) tidy() (done bool, err error) {
	if done, err := s.removeNamed(spentName(s.name)); done || err != nil {
		return done, err
	}
	info, err := s.parent.Lstat(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, removeIfThere(s.parent, parkedName(s.name))
	}
	if err != nil {
		return false, err
	}
	if info.IsDir() {
		_ = s.parent.Remove(s.name) // if it is empty
	}
	folder, err := private.Open(s.parent, s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = folder.Close() }()
	if lock, err := folder.OpenFile(lockName, os.O_RDWR, 0); err == nil {
		defer lock.Close()
		if lockFile(lock) != nil {
			return false, nil // it is being built
		}
	}
	if !published(folder) {
		return false, nil
	}
	return true, s.retire(folder)
}

// removeNamed removes a folder of the parent's, and reports whether it was there.
func (s *Stage) removeNamed(name string) (bool, error) {
	folder, err := private.Open(s.parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer folder.Close()
	return true, private.Remove(s.parent, name, folder)
}

func (s *Stage) checkDest() error {
	info, err := s.parent.Lstat(filepath.Base(s.dest))
	if errors.Is(err, fs.ErrNotExist) && !s.opts.Append {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.opts.Overwrite && !s.opts.Append {
		return fmt.Errorf("%s %w already; choose another name or allow to overwrite it", s.dest, ErrExist)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w and is neither a file nor a folder; it will not be overwritten", s.dest, ErrExist)
	}
	if info.IsDir() {
		if _, err := s.parent.Lstat(filepath.Join(filepath.Base(s.dest), ManifestName)); err != nil {
			return fmt.Errorf("%s %w and has no %s, so it is no dataset; it will not be overwritten: remove it yourself if it can go", s.dest, ErrExist, ManifestName)
		}
	}
	return nil
}

// lockName is the file of the folder that is locked.
const lockName = "build.lock"

// open makes the folder, or opens the one of a process that is gone, and locks it. Another process may
// remove or publish the folder at any time before it is locked; then there is a new one to be made.
func (s *Stage) open() error {
	for {
		folder, err := private.Make(s.parent, s.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		lock, err := private.OpenLock(folder, lockName)
		if errors.Is(err, fs.ErrNotExist) {
			_ = folder.Close()
			continue
		}
		if err != nil {
			return errors.Join(err, folder.Close())
		}
		if err := lockFile(lock); err != nil {
			return errors.Join(fmt.Errorf("%s is %w: another process is building it in %s", s.dest, ErrBusy, stageDir(s.dest)), lock.Close(), folder.Close())
		}
		if sameFile(lock, folder, lockName) && private.Same(s.parent, s.name, folder) {
			s.folder, s.lock = folder, lock
			s.handle, err = folder.Open(".")
			return err
		}
		if !private.Same(s.parent, s.name, folder) {
			_ = folder.Remove(lockName) // a dataset has none
		}
		_ = lock.Close()
		_ = folder.Close()
	}
}

// sameFile reports whether f is still the file of that name.
func sameFile(f *os.File, folder *os.Root, name string) bool {
	own, err := f.Stat()
	there, errThere := folder.Lstat(name)
	return err == nil && errThere == nil && os.SameFile(own, there)
}

func (s *Stage) takeOver() error {
	parked := parkedName(s.name)
	if !s.opts.Keep {
		return errors.Join(s.clear(nil), removeIfThere(s.parent, parked))
	}
	if err := s.drop(movingName); err != nil { // the files of the stage are about to change
		return err
	}
	if _, err := s.folder.Lstat(JournalName); err == nil {
		return removeIfThere(s.parent, parked)
	}
	return s.unpark()
}

func removeIfThere(folder *os.Root, name string) error {
	if err := folder.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// clear removes all files but those to keep: the journal first, as it tells of the others.
func (s *Stage) clear(keep map[string]bool) error {
	if !keep[JournalName] {
		if err := s.drop(JournalName); err != nil {
			return err
		}
	}
	return private.Empty(s.folder, append(slices.Collect(maps.Keys(keep)), lockName)...)
}

// drop removes a file of the stage for good, if it is there.
func (s *Stage) drop(name string) error {
	err := s.folder.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, s.sync())
}

// sync waits until the names in the folder are on disk.
func (s *Stage) sync() error { return syncRoot(s.folder) }

// Root returns the open folder. All files of a build are made through it; the Stage closes it.
func (s *Stage) Root() *os.Root { return s.folder }

// Reopen opens a file of the folder, which may have been finished, for reading and writing.
func (s *Stage) Reopen(name string) (*os.File, error) {
	info, err := s.folder.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		if err := s.folder.Chmod(name, info.Mode().Perm()|0o200); err != nil {
			return nil, err
		}
	}
	return s.folder.OpenFile(name, os.O_RDWR, 0)
}

// create makes a new file in the folder.
func (s *Stage) create(name string) (*os.File, error) { return private.Create(s.folder, name, 0o666) }

// Through returns a path of a file in the stage that leads through the open folder, where the system has such,
// and so to this stage whatever becomes of the names above it. It is for libraries that take paths only, and
// is good in this process until the stage is closed.
func (s *Stage) Through(name string) string {
	if dir := private.Through(s.handle); dir != "" {
		return filepath.Join(dir, name)
	}
	return s.Path(name)
}

// Path returns the path of a file in the stage, for messages.
func (s *Stage) Path(name string) string { return filepath.Join(stageDir(s.dest), name) }

// Dest returns the absolute path of the destination.
func (s *Stage) Dest() string { return s.dest }

// Abort removes the stage. After a Publish it does nothing.
func (s *Stage) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	return errors.Join(s.remove(), s.close())
}

// remove removes the stage.
func (s *Stage) remove() error {
	if published(s.folder) {
		return s.retire(s.folder)
	}
	return errors.Join(removeIfThere(s.folder, movingName), private.Remove(s.parent, s.name, s.folder))
}

// retire removes a folder that is spent. It gets another name first: while it goes, nobody takes it
// for one that was just begun.
func (s *Stage) retire(folder *os.Root) error {
	spent := spentName(s.name)
	if err := s.parent.Rename(s.name, spent); err != nil {
		return err
	}
	return private.Remove(s.parent, spent, folder)
}

// Release lets go of the stage and leaves what is in it. After a Publish it does nothing.
func (s *Stage) Release() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.close()
}
