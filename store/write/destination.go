package write

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// StageOptions configures OpenStage.
type StageOptions struct {
	Overwrite bool // an existing dataset is replaced
	Append    bool // a dataset must be there, and gets more
	Keep      bool // what a build left in the stage stays there
}

// destination is the path of a dataset, and the names beside it (staging directory, lock, journal) that a build uses.
type destination struct {
	path   string   // absolute
	stage  string   // name of the stage, in parent
	parent *os.Root // the folder that both are in
	lock   *os.File // nil where the file system has no locks
	opts   StageOptions

	expected fs.FileInfo // of the file that the path must still have when it is replaced (Stage.Expect); nil: any
}

func (d *destination) name() string { return filepath.Base(d.path) }

// StageDir returns the folder in which dest is built, which becomes dest or is removed.
func StageDir(dest string) string {
	return filepath.Join(filepath.Dir(dest), "."+filepath.Base(dest)+".building")
}

// acquire locks the destination for this process. On a file system without locks no other builder is kept out, which
// Stage.Locked reports.
func (d *destination) acquire() (err error) {
	d.lock, err = Lock(d.parent, lockName(d.stage))
	switch {
	case errors.Is(err, store.ErrBusy):
		return fmt.Errorf("%s is %w: another process is building it in %s", d.path, store.ErrBusy, StageDir(d.path))
	case errors.Is(err, ErrNoLocks):
		return nil
	}
	return err
}

// unlock lets other processes build the destination.
func (d *destination) unlock() {
	if d.lock != nil {
		Unlock(d.parent, lockName(d.stage), d.lock)
		d.lock = nil
	}
}

// tidy removes what is left of a build that was killed after it had published everything, and reports whether there was
// such a build. The caller holds the lock, so no living process is at work in the staging directory.
func (d *destination) tidy() (done bool, err error) {
	if done, err := d.removePublished(); done || err != nil {
		return done, err
	}
	info, err := d.parent.Lstat(d.stage)
	if errors.Is(err, fs.ErrNotExist) {
		return false, removeIfThere(d.parent, journalAside(d.stage))
	}
	if err != nil {
		return false, err
	}
	if info.IsDir() {
		_ = d.parent.Remove(d.stage) // fails unless the directory is empty
	}
	folder, err := private.Open(d.parent, d.stage)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = folder.Close() }()
	if !published(folder) {
		if done, err := d.committed(folder); !done || err != nil {
			return false, err
		}
	}
	if err := d.retire(); err != nil {
		return true, err
	}
	return d.removePublished()
}

// committed reports whether the manifest of a stage is already a generation of the destination. Its writer was killed
// between the commit and the replacement of manifest.json, which committed makes up for.
func (d *destination) committed(stage *os.Root) (bool, error) {
	if !d.opts.Append {
		return false, nil
	}
	text, err := stage.ReadFile(layout.ManifestName)
	if err != nil {
		return false, nil // the build had not come to it
	}
	m, err := store.DecodeManifest(text)
	if err != nil {
		return false, nil
	}
	dest, err := private.Real(d.parent, d.name())
	if err != nil {
		return false, err
	}
	defer dest.Close()
	there, err := dest.ReadFile(layout.GenerationName(m.Generation))
	if err != nil || !bytes.Equal(there, text) {
		return false, nil
	}
	return true, errors.Join(forward(dest, m.Generation), stage.Remove(layout.ManifestName))
}

// removePublished removes a staging directory whose content is published, and reports whether there was one.
func (d *destination) removePublished() (bool, error) {
	name := publishedName(d.stage)
	folder, err := private.Open(d.parent, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer folder.Close()
	if d.resumesAppend() {
		d.unlock() // before the removal: from the folder, the next process learns that the records were appended
	}
	return true, private.Remove(d.parent, name, folder)
}

// resumesAppend reports whether the build is an append that continues an interrupted one. If the interrupted append
// had published everything, nothing is left to append, and OpenStage returns store.ErrCommitted.
func (d *destination) resumesAppend() bool { return d.opts.Append && d.opts.Keep }

// check refuses to write over what is not a dataset. A folder without a manifest may be anybody's, and replacing it
// would lose files that no program can bring back; it is refused even with Overwrite. If the destination changed since
// the run began, somebody else is at work there.
func (d *destination) check() error {
	info, err := d.parent.Lstat(d.name())
	if errors.Is(err, fs.ErrNotExist) && !d.opts.Append {
		return nil
	}
	if err != nil {
		return err
	}
	if !d.opts.Overwrite && !d.opts.Append {
		return fmt.Errorf("%s %w already; choose another name or allow to overwrite it", d.path, store.ErrExist)
	}
	if was := d.expected; was != nil && (!os.SameFile(info, was) || info.Size() != was.Size() ||
		!info.ModTime().Equal(was.ModTime())) {
		return fmt.Errorf("%s was changed meanwhile: %w", d.path, store.ErrBusy)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w and is neither a file nor a folder; it will not be overwritten", d.path, store.ErrExist)
	}
	if info.IsDir() {
		there := func(name string) bool {
			_, err := d.parent.Lstat(filepath.Join(d.name(), name))
			return err == nil
		}
		if !slices.ContainsFunc(manifests, there) {
			return fmt.Errorf("%s %w and has no %s, so it is not a dataset; it will not be overwritten: remove it yourself "+
				"if it can go", d.path, store.ErrExist, layout.ManifestName)
		}
		if err := checkWritable(d.path); err != nil {
			return fmt.Errorf("the folder %s cannot be changed: %w; choose one that you may write to", d.path, err)
		}
	}
	return nil
}

// retire renames a staging directory whose content is published. Removing a directory takes many steps, and a process
// that opened the half-removed directory under its old name would take it for a new build.
func (d *destination) retire() error { return d.parent.Rename(d.stage, publishedName(d.stage)) }

// replace moves the file or folder of a name to the destination. A folder cannot be renamed over another folder, so
// the two change places, in one step where the system has one, and then the old dataset is removed. Elsewhere the
// old dataset is moved aside first: a crash between the two renames leaves no dataset at the destination, and the
// old dataset in STAGE.old. A replaced file hands its owner, group and permissions on to the new one.
func (d *destination) replace(from *os.Root, name string) error {
	dest := d.name()
	info, err := d.parent.Lstat(dest)
	if errors.Is(err, fs.ErrNotExist) {
		return private.Move(from, name, d.parent, dest)
	}
	if err != nil {
		return err
	}
	is, err := from.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() && !is.IsDir() {
		if err := keepAccess(from, name, info); err != nil {
			return err
		}
		return private.Move(from, name, d.parent, dest)
	}
	remove := func(parent *os.Root, name string) error { return parent.Remove(name) }
	if info.IsDir() {
		old, err := private.Real(d.parent, dest)
		if err != nil {
			return err
		}
		defer old.Close()
		remove = func(parent *os.Root, name string) error {
			return private.Remove(parent, name, old)
		}
	}
	if private.Exchange(from, name, d.parent, dest) == nil {
		return errors.Join(SyncRoot(d.parent), remove(from, name))
	}
	aside := d.stage + ".old"
	if err := d.parent.Rename(dest, aside); err != nil {
		return err
	}
	if err := private.Move(from, name, d.parent, dest); err != nil {
		return errors.Join(err, d.parent.Rename(aside, dest))
	}
	return remove(d.parent, aside)
}

// journalAside is the name of the journal while its folder is published: beside the folder, so that the published
// dataset has no journal in it, and a build that is killed at this point can still be resumed.
func journalAside(stage string) string { return stage + ".journal" }

// destJournalAside is journalAside for the staging directory of a destination.
func destJournalAside(dest string) string { return journalAside(StageDir(dest)) }

// publishedName is the name of a staging directory while it is removed after all of its content was published. If a
// kill leaves such a directory, the next writer removes it and never resumes it.
func publishedName(stage string) string { return stage + ".done" }
