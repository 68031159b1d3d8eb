package write

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// parkedName is where the journal waits while its folder is published, so that the
// dataset has none and a build that is killed there can still be resumed.
func parkedName(stage string) string { return stage + ".journal" }

func parkedJournal(dest string) string { return parkedName(stageDir(dest)) }

// movingName is a file of the stage with the name of the one that is about to be moved out
// of it as the last one: once that is gone, the rest can go.
const movingName = "build.moving"

// spentName is the name of the stage when all is published, while it is removed.
func spentName(stage string) string { return stage + ".done" }

// PublishFolder makes the stage itself the destination. Its files must be on disk already
// (see SyncFile).
func (s *Stage) PublishFolder() error {
	if err := s.park(); err != nil {
		return err
	}
	if err := s.widen(); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.publish(); err != nil {
		return err
	}
	s.done = true
	return errors.Join(removeIfThere(s.parent, parkedName(s.name)), s.close())
}

// widen gives the folder the permissions that a new one gets here.
func (s *Stage) widen() error {
	const like = "build.mode"
	if err := s.folder.Mkdir(like, 0o777); err != nil {
		return err
	}
	info, err := s.folder.Lstat(like)
	if err = errors.Join(err, s.folder.Remove(like)); err != nil {
		return err
	}
	return s.folder.Chmod(".", info.Mode())
}

// park moves the journal, if there is one, out of the folder.
func (s *Stage) park() error {
	if _, err := s.folder.Lstat(JournalName); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	manifest, err := s.folder.ReadFile(store.ManifestName)
	if err != nil {
		return err
	}
	if err := announce(s.folder, manifest); err != nil {
		return err
	}
	if err := private.Move(s.folder, JournalName, s.parent, parkedName(s.name)); err != nil {
		return err
	}
	return SyncRoot(s.parent)
}

// unpark moves it back. If the folder is not the one that it is of, because that has changed
// places with an old dataset, perhaps of the same content, it is done with, and so is the
// folder.
func (s *Stage) unpark() error {
	parked := parkedName(s.name)
	journal, err := private.ReadFile(s.parent, parked, s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	there := func(name string) ([]byte, error) {
		return s.parent.ReadFile(filepath.Join(filepath.Base(s.dest), name))
	}
	if announced(journal, there) || !announced(journal, s.folder.ReadFile) {
		return errors.Join(s.clear(nil), s.parent.Remove(parked))
	}
	return private.Move(s.parent, parked, s.folder, JournalName)
}

// PublishInto moves the named files of the stage into the destination, a folder, and
// removes the rest. The last one is moved when all others are there for good.
func (s *Stage) PublishInto(names ...string) error {
	dest, err := private.Real(s.parent, filepath.Base(s.dest))
	if err != nil {
		return err
	}
	defer dest.Close()
	if err := s.moving(names[len(names)-1]); err != nil {
		return err
	}
	for i, name := range names {
		if i == len(names)-1 {
			if err := SyncRoot(dest); err != nil {
				return err
			}
		}
		if err := private.Move(s.folder, name, dest, name); err != nil {
			return err
		}
	}
	if err := SyncRoot(dest); err != nil {
		return err
	}
	return s.Abort()
}

// PublishFile makes the named file of the stage, or a folder that has a manifest, the destination and removes the rest.
func (s *Stage) PublishFile(name string) error {
	if err := s.moving(name); err != nil {
		return err
	}
	if err := s.checkDest(); err != nil {
		return err
	}
	if err := s.replace(s.folder, name); err != nil {
		return err
	}
	if err := SyncRoot(s.parent); err != nil {
		return err
	}
	return s.Abort()
}

// publish makes the folder the destination.
func (s *Stage) publish() error {
	if err := s.checkDest(); err != nil {
		return err
	}
	if err := s.replace(s.parent, s.name); err != nil {
		return err
	}
	if !private.Same(s.parent, filepath.Base(s.dest), s.folder) {
		return fmt.Errorf("%s is not what was published there: %w", s.dest, private.ErrForeign)
	}
	return SyncRoot(s.parent)
}

// replace moves what has a name in a folder to the destination. A folder cannot be renamed over
// another one, so the two change places, in one step where the system can do that, and the old one
// is removed.
func (s *Stage) replace(from *os.Root, name string) error {
	dest := filepath.Base(s.dest)
	info, err := s.parent.Lstat(dest)
	if errors.Is(err, fs.ErrNotExist) {
		return private.Move(from, name, s.parent, dest)
	}
	if err != nil {
		return err
	}
	is, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() && !is.IsDir() {
		return private.Move(from, name, s.parent, dest)
	}
	remove := func(parent *os.Root, name string) error { return parent.Remove(name) }
	if info.IsDir() {
		old, err := private.Real(s.parent, dest)
		if err != nil {
			return err
		}
		defer old.Close()
		remove = func(parent *os.Root, name string) error {
			return private.Remove(parent, name, old)
		}
	}
	if private.Exchange(from, name, s.parent, dest) == nil {
		return errors.Join(SyncRoot(s.parent), remove(from, name))
	}
	aside := s.name + ".old"
	if err := s.parent.Rename(dest, aside); err != nil {
		return err
	}
	if err := private.Move(from, name, s.parent, dest); err != nil {
		return errors.Join(err, s.parent.Rename(aside, dest))
	}
	return remove(s.parent, aside)
}

// published reports whether the last file to be moved out of a stage is. A folder may have changed places with an old
// dataset, which has another manifest.
func published(folder *os.Root) bool {
	text, err := folder.ReadFile(movingName)
	if err != nil || len(text) == 0 {
		return false
	}
	name, want, _ := strings.Cut(string(text), "\n")
	name = filepath.Base(name)
	if _, err = folder.Lstat(name); err == nil && want != "" {
		return manifestSum(folder, name) != want
	}
	return errors.Is(err, fs.ErrNotExist)
}

// moving says which file leaves the stage last.
func (s *Stage) moving(name string) error {
	text := name
	if sum := manifestSum(s.folder, name); sum != "" {
		text += "\n" + sum
	}
	if err := s.WriteFile(movingName, []byte(text)); err != nil {
		return err
	}
	return s.sync()
}

// manifestSum returns the checksum of the manifest of a dataset that is a folder in another one; "" if there is none.
func manifestSum(folder *os.Root, name string) string {
	for _, manifest := range manifests {
		if text, err := folder.ReadFile(filepath.Join(name, manifest)); err == nil {
			return layout.HexCRC(layout.CRC32C(text))
		}
	}
	return ""
}

// manifests are the files that make a folder a dataset.
var manifests = []string{store.ManifestName, filepath.FromSlash(layout.ZarrManifest)}

// SyncFile waits until f is on disk, makes it read-only for those who can read it, and closes it.
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
