package write

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// PublishFolder makes the stage itself the destination. The files of the stage must be on disk already (see SyncFile).
// The journal is moved out first, as a published dataset has no journal, and removed last: until then an interrupted
// publication can be resumed.
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
	return errors.Join(removeIfThere(s.dest.parent, journalAside(s.dest.stage)), s.close())
}

// park moves the journal, if the folder has a journal, out of the folder. The journal first announces the manifest:
// after a crash, restoreJournal looks for that manifest at the destination and in the stage.
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
	if err := private.Move(s.Folder.root, JournalName, s.dest.parent, journalAside(s.dest.stage)); err != nil {
		return err
	}
	return SyncRoot(s.dest.parent)
}

// PublishGeneration moves the named files of the stage into the destination, a folder whose newest manifest is base,
// then makes the manifest of the stage the next generation, and removes the rest of the stage.
//
// The moved files are synced before the manifest gets the number of the generation by a link, which is the commit.
// After a crash before the link, a resumed build moves the files back, as its journal lists the renames. After a crash
// behind the link, [OpenStage] for an append replaces manifest.json.
func (s *Stage) PublishGeneration(base *store.Manifest, names ...string) error {
	dest, err := private.Real(s.dest.parent, s.dest.name())
	if err != nil {
		return err
	}
	defer dest.Close()
	text, err := s.Folder.root.ReadFile(layout.ManifestName)
	if err != nil {
		return err
	}
	if err := moving(s.Folder, layout.ManifestName); err != nil {
		return err
	}
	for _, name := range names {
		if err := private.Move(s.Folder.root, name, dest, name); err != nil {
			return err
		}
	}
	if err := SyncRoot(dest); err != nil {
		return err
	}
	held, err := holdGenerations(dest)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := keepGeneration(dest, base); err != nil {
		return err
	}
	if err := claim(dest, s.linkTo, base.Generation+1, text); err != nil {
		return err
	}
	if err := private.Move(s.Folder.root, layout.ManifestName, dest, layout.ManifestName); err != nil {
		return err
	}
	if err := SyncRoot(dest); err != nil {
		return err
	}
	return s.Abort()
}

// linkTo gives the manifest of the stage a second name in the destination.
func (s *Stage) linkTo(name string) error {
	return s.dest.parent.Link(filepath.Join(s.dest.stage, layout.ManifestName),
		filepath.Join(s.dest.name(), filepath.FromSlash(name)))
}

// PublishFile makes the named file of the stage, or a folder that has a manifest, the destination, and removes the rest
// of the stage.
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

// publish makes the folder the destination. It checks afterwards that the destination is the open folder: another user
// of the parent folder could have put something else under the name of the stage.
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
