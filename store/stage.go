package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Stage is the place beside a destination where a dataset is built: the hidden folder
// ".NAME.building". Publish renames what lies in it to the destination; Abort removes it;
// Release leaves it, for a later build to go on with. A lock, which ends with the process,
// keeps a second builder out, and a folder that a killed process left is taken over.
//
// Every writer of this module builds in a Stage. It serves one goroutine.
type Stage struct {
	dest string
	dir  string
	lock *os.File
	opts StageOptions
	done bool
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
	s := &Stage{dest: dest, opts: opts, dir: stageDir(dest)}
	if s.tidy() && opts.Append && opts.Keep {
		return nil, fmt.Errorf("%s: these records are %w", dest, ErrCommitted)
	}
	if err := s.checkDest(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dest), 0o777); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
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
func (s *Stage) tidy() bool {
	if _, err := os.Lstat(spentDir(s.dest)); err == nil {
		return os.RemoveAll(spentDir(s.dest)) == nil
	}
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(parkedJournal(s.dest))
		return false
	}
	_ = os.Remove(s.dir) // if it is empty
	if lock, err := os.OpenFile(s.lockName(), os.O_RDWR, 0); err == nil {
		defer lock.Close()
		if lockFile(lock) != nil {
			return false // it is being built
		}
	}
	return s.published() && s.remove() == nil
}

func (s *Stage) checkDest() error {
	info, err := os.Lstat(s.dest)
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
		if _, err := os.Lstat(filepath.Join(s.dest, ManifestName)); err != nil {
			return fmt.Errorf("%s %w and has no %s, so it is no dataset; it will not be overwritten: remove it yourself if it can go", s.dest, ErrExist, ManifestName)
		}
	}
	return nil
}

// open makes the folder, or takes over the one of a process that is gone.
func (s *Stage) open() error {
	lock, err := s.openLock()
	if err != nil {
		return err
	}
	s.lock = lock
	if err := s.takeOver(); err != nil {
		s.lock.Close()
		return err
	}
	return nil
}

// openLock returns the locked lock of the folder. Another process may remove or publish the
// folder at any time before it is locked; then there is a new one to be made.
func (s *Stage) openLock() (*os.File, error) {
	for {
		if err := os.MkdirAll(s.dir, 0o777); err != nil {
			return nil, err
		}
		lock, err := os.OpenFile(s.lockName(), os.O_CREATE|os.O_RDWR, 0o666)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := lockFile(lock); err != nil {
			lock.Close()
			return nil, fmt.Errorf("%s is %w: another process is building it in %s", s.dest, ErrBusy, s.dir)
		}
		if sameFile(lock, s.lockName()) {
			return lock, nil
		}
		lock.Close()
	}
}

// sameFile reports whether f is still the file at path.
func sameFile(f *os.File, path string) bool {
	own, err := f.Stat()
	there, errThere := os.Stat(path)
	return err == nil && errThere == nil && os.SameFile(own, there)
}

func (s *Stage) takeOver() error {
	parked := parkedJournal(s.dest)
	if !s.opts.Keep {
		return errors.Join(s.clear(nil), removeIfThere(parked))
	}
	if err := s.drop(movingName); err != nil { // the files of the stage are about to change
		return err
	}
	if _, err := os.Lstat(s.Path(JournalName)); err == nil {
		return removeIfThere(parked)
	}
	return s.unpark()
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
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
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if path := s.Path(e.Name()); path != s.lockName() && !keep[e.Name()] {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// drop removes a file of the stage for good, if it is there.
func (s *Stage) drop(name string) error {
	err := os.Remove(s.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(s.dir))
}

func (s *Stage) lockName() string { return s.Path("build.lock") }

// Path returns the path of a file in the stage.
func (s *Stage) Path(name string) string { return filepath.Join(s.dir, name) }

// Dest returns the absolute path of the destination.
func (s *Stage) Dest() string { return s.dest }

// Abort removes the stage. After a Publish it does nothing.
func (s *Stage) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	return errors.Join(s.remove(), s.lock.Close())
}

// remove removes the stage. One that is spent gets another name first: while it goes, nobody
// takes it for one that was just begun.
func (s *Stage) remove() error {
	if !s.published() {
		return errors.Join(removeIfThere(s.Path(movingName)), os.RemoveAll(s.dir))
	}
	if err := os.Rename(s.dir, spentDir(s.dest)); err != nil {
		return err
	}
	return os.RemoveAll(spentDir(s.dest))
}

// Release lets go of the stage and leaves what is in it. After a Publish it does nothing.
func (s *Stage) Release() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.lock.Close()
}
