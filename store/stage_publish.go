package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// parkedJournal is where the journal waits while its folder is published, so that the
// dataset has none and a build that is killed there can still be resumed.
func parkedJournal(dest string) string { return stageDir(dest) + ".journal" }

// movingName is a file of the stage with the name of the one that is about to be moved out
// of it as the last one: once that is gone, the rest can go.
const movingName = "build.moving"

// spentDir is the name of the stage when all is published, while it is removed.
func spentDir(dest string) string { return stageDir(dest) + ".done" }

// PublishFolder makes the stage itself the destination. Its files must be on disk already
// (see SyncFile).
func (s *Stage) PublishFolder() error {
	if err := s.park(); err != nil {
		return err
	}
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
	return errors.Join(removeIfThere(parkedJournal(s.dest)), s.lock.Close())
}

// park moves the journal, if there is one, out of the folder.
func (s *Stage) park() error {
	path := s.Path(JournalName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	manifest, err := os.ReadFile(s.Path(ManifestName))
	if err != nil {
		return err
	}
	if err := announce(path, manifest); err != nil {
		return err
	}
	if err := os.Rename(path, parkedJournal(s.dest)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.dest))
}

// unpark moves it back. If the folder is not the one that it is of, because that has changed
// places with an old dataset, perhaps of the same content, it is done with, and so is the
// folder.
func (s *Stage) unpark() error {
	parked := parkedJournal(s.dest)
	journal, err := os.ReadFile(parked)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if announced(journal, s.dest) || !announced(journal, s.dir) {
		return errors.Join(s.clear(nil), os.Remove(parked))
	}
	return os.Rename(parked, s.Path(JournalName))
}

// PublishInto moves the named files of the stage into the destination, a folder, and
// removes the rest. The last one is moved when all others are there for good.
func (s *Stage) PublishInto(names ...string) error {
	if err := s.moving(names[len(names)-1]); err != nil {
		return err
	}
	for i, name := range names {
		if i == len(names)-1 {
			if err := syncDir(s.dest); err != nil {
				return err
			}
		}
		if err := os.Rename(s.Path(name), filepath.Join(s.dest, name)); err != nil {
			return err
		}
	}
	if err := syncDir(s.dest); err != nil {
		return err
	}
	return s.Abort()
}

// PublishFile makes the named file of the stage the destination and removes the rest.
func (s *Stage) PublishFile(name string) error {
	if err := s.moving(name); err != nil {
		return err
	}
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
		return errors.Join(syncDir(filepath.Dir(dest)), os.RemoveAll(path))
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

// published reports whether the last file to be moved is.
func (s *Stage) published() bool {
	name, err := os.ReadFile(s.Path(movingName))
	if err != nil || len(name) == 0 {
		return false
	}
	_, err = os.Lstat(s.Path(filepath.Base(string(name))))
	return errors.Is(err, fs.ErrNotExist)
}

// moving says which file leaves the stage last.
func (s *Stage) moving(name string) error {
	if err := writeFile(s.Path(movingName), []byte(name)); err != nil {
		return err
	}
	return syncDir(s.dir)
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
