package write

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
)

// PublishFolder makes the stage itself the destination. Its files must be on disk already
// (see SyncFile).
func (s *Stage) PublishFolder() error {
	if err := s.park(); err != nil {
		return err
	}
	if err := s.Folder.widen(); err != nil {
		return err
	}
	if err := s.Folder.sync(); err != nil {
		return err
	}
	if err := s.publish(); err != nil {
		return err
	}
	s.done = true
	return errors.Join(removeIfThere(s.dest.parent, parkedName(s.dest.stage)), s.close())
}

// park moves the journal, if there is one, out of the folder.
func (s *Stage) park() error {
	if _, err := s.Folder.root.Lstat(JournalName); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	manifest, err := s.Folder.root.ReadFile(layout.ManifestName)
	if err != nil {
		return err
	}
	if err := announce(s.Folder.root, manifest); err != nil {
		return err
	}
	if err := private.Move(s.Folder.root, JournalName, s.dest.parent, parkedName(s.dest.stage)); err != nil {
		return err
	}
	return SyncRoot(s.dest.parent)
}

// PublishInto moves the named files of the stage into the destination, a folder, and
// removes the rest. The last one is moved when all others are there for good.
func (s *Stage) PublishInto(names ...string) error {
	dest, err := private.Real(s.dest.parent, s.dest.name())
	if err != nil {
		return err
	}
	defer dest.Close()
	if err := moving(s.Folder, names[len(names)-1]); err != nil {
		return err
	}
	for i, name := range names {
		if i == len(names)-1 {
			if err := SyncRoot(dest); err != nil {
				return err
			}
		}
		if err := private.Move(s.Folder.root, name, dest, name); err != nil {
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
	if err := moving(s.Folder, name); err != nil {
		return err
	}
	if err := s.dest.check(); err != nil {
		return err
	}
	if err := s.dest.replace(s.Folder.root, name); err != nil {
		return err
	}
	if err := SyncRoot(s.dest.parent); err != nil {
		return err
	}
	return s.Abort()
}

// publish makes the folder the destination.
func (s *Stage) publish() error {
	if err := s.dest.check(); err != nil {
		return err
	}
	if err := s.dest.replace(s.dest.parent, s.dest.stage); err != nil {
		return err
	}
	if !private.Same(s.dest.parent, s.dest.name(), s.Folder.root) {
		return fmt.Errorf("%s is not what was published there: %w", s.dest.path, private.ErrForeign)
	}
	return SyncRoot(s.dest.parent)
}
