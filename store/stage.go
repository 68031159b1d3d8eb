package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Stage is the place beside a destination where a dataset is built: the hidden folder
// ".NAME.building". Publish renames what lies in it to the destination; Abort removes it. A
// lock, which ends with the process, keeps a second builder out, and a folder that a killed
// process left is cleared and used again.
//
// Every writer of this module builds in a Stage. It serves one goroutine.
type Stage struct {
	dest      string
	dir       string
	lock      *os.File
	overwrite bool
	done      bool
}

// NewStage prepares to build dest. An existing dest is ErrExist unless overwrite is set, and
// then it must be something that penstock can know to be a dataset: a folder with a
// manifest, or a file. A dest that is being built is ErrBusy.
func NewStage(dest string, overwrite bool) (*Stage, error) {
	dest, err := filepath.Abs(dest)
	if err != nil {
		return nil, err
	}
	s := &Stage{dest: dest, overwrite: overwrite, dir: filepath.Join(filepath.Dir(dest), "."+filepath.Base(dest)+".building")}
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

func (s *Stage) checkDest() error {
	info, err := os.Lstat(s.dest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.overwrite {
		return fmt.Errorf("%s %w already; choose another name or allow to overwrite it", s.dest, ErrExist)
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
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.lockName(), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	if err := lockFile(lock); err != nil {
		lock.Close()
		return fmt.Errorf("%s is %w: another process is building it in %s", s.dest, ErrBusy, s.dir)
	}
	s.lock = lock
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if path := s.Path(e.Name()); path != s.lockName() {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	if err != nil {
		s.lock.Close()
	}
	return err
}

func (s *Stage) lockName() string { return s.Path("build.lock") }

// Path returns the path of a file in the stage.
func (s *Stage) Path(name string) string { return filepath.Join(s.dir, name) }

// Dest returns the absolute path of the destination.
func (s *Stage) Dest() string { return s.dest }

// PublishFolder makes the stage itself the destination. Its files must be on disk already
// (see SyncFile).
func (s *Stage) PublishFolder() error {
	if err := os.Remove(s.lockName()); err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	if err := s.publish(s.dir); err != nil {
		return err
	}
	s.done = true
	return s.lock.Close()
}

// PublishFile makes the named file of the stage the destination and removes the rest.
func (s *Stage) PublishFile(name string) error {
	if err := s.publish(s.Path(name)); err != nil {
		return err
	}
	return s.Abort()
}

func (s *Stage) publish(path string) error {
	if err := s.checkDest(); err != nil {
		return err
	}
	if err := replace(path, s.dest); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.dest))
}

// replace renames path to dest. A folder cannot be renamed over another one, so the two
// change places, in one step where the system can do that, and the old one is removed.
func replace(path, dest string) error {
	info, err := os.Lstat(dest)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(path, dest)
	}
	if err != nil {
		return err
	}
	from, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() && !from.IsDir() {
		return os.Rename(path, dest)
	}
	if exchange(path, dest) == nil {
		return os.RemoveAll(path)
	}
	old := path + ".old"
	if err := os.Rename(dest, old); err != nil {
		return err
	}
	if err := os.Rename(path, dest); err != nil {
		return errors.Join(err, os.Rename(old, dest))
	}
	return os.RemoveAll(old)
}

// Abort removes the stage. After a Publish it does nothing.
func (s *Stage) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	err := os.RemoveAll(s.dir)
	return errors.Join(err, s.lock.Close())
}

// SyncFile waits until f is on disk, makes it read-only and closes it.
func SyncFile(f *os.File) error {
	err := errors.Join(f.Sync(), f.Chmod(0o444))
	return errors.Join(err, f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return ignoreNoSync(d.Sync())
}
