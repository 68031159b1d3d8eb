package write

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/store"
)

// Stage is the place next to a destination where a dataset is built: the hidden folder ".NAME.building". Publish
// renames its content to the destination; Abort removes it; Release leaves it, for a later build to continue. A lock,
// which ends with the process, keeps a second builder out, and a folder that a killed process left is taken over.
//
// Other users may know the name of the stage and be allowed to write next to it. So the stage must be a real folder of
// this user that nobody else may write to, and all work in it goes through an open handle: see package private. A path
// could lead to another user's folder by the time it is used.
//
// Every writer of this module builds in a Stage. A Stage serves one goroutine.
type Stage struct {
	Folder *Folder // what is in it

	dest destination
	done bool
}

// OpenStage prepares to build dest. An existing dest is ErrExist unless opts allow it, and then it must be something
// that penstock can know to be a dataset: a folder with a manifest, or a file. A dest that is being built is
// store.ErrBusy. A missing dest to append to is fs.ErrNotExist. ErrCommitted says that an interrupted append had been
// committed before its process was killed.
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
	s := &Stage{dest: destination{path: dest, stage: filepath.Base(StageDir(dest)), opts: opts}}
	if s.dest.parent, err = os.OpenRoot(filepath.Dir(dest)); err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// begin takes the lock of the destination, finishes what a killed writer left half done, and makes or takes over the
// staging directory. The order matters: without the lock, another writer may be in the middle of the work that tidy
// would finish.
func (s *Stage) begin() error {
	if err := s.dest.acquire(); err != nil {
		if errors.Is(err, store.ErrBusy) {
			return err
		}
		return cmp.Or(s.dest.check(), err) // if the folder is not writable, first report what exists
	}
	done, err := s.dest.tidy()
	if err != nil {
		return err
	}
	if done && s.dest.resumesAppend() {
		return fmt.Errorf("%s: these records are %w", s.dest.path, store.ErrCommitted)
	}
	if err := s.dest.check(); err != nil {
		return err
	}
	if s.Folder, err = makeFolder(s.dest.parent, StageDir(s.dest.path)); err != nil {
		return err
	}
	return s.takeOver()
}

// close closes all open handles and releases the lock.
func (s *Stage) close() (err error) {
	if s.Folder != nil {
		err = s.Folder.close()
	}
	s.dest.unlock()
	return errors.Join(err, s.dest.parent.Close())
}

// CheckDest reports the error that OpenStage would return, and leaves everything as it is. Only the remains of a build
// that was killed after it had published everything are removed, as OpenStage does.
func CheckDest(dest string, opts StageOptions) error {
	abs, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	_, err = os.Lstat(StageDir(abs))
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

// Unfinished reports whether an interrupted build of dest can be resumed.
func Unfinished(dest string) bool {
	dest, err := filepath.Abs(dest)
	if err != nil {
		return false
	}
	for _, path := range []string{filepath.Join(StageDir(dest), JournalName), destJournalAside(dest)} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// ReadUnfinished returns the inputs and the fields of an interrupted build of dest, and the records that a build
// with Keep would not write again. The inputs are nil if there is no such build.
func ReadUnfinished(dest string) (inputs map[string]string, fields []store.Field, kept store.Kept,
	err error) {
	if dest, err = filepath.Abs(dest); err != nil {
		return nil, nil, store.Kept{}, err
	}
	data, err := fs.ReadFile(vfs.Folder(StageDir(dest)), JournalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, store.Kept{}, nil
	}
	if err != nil {
		return nil, nil, store.Kept{}, err
	}
	h, err := readJournal(data)
	if err != nil || h == nil {
		return nil, nil, store.Kept{}, err
	}
	if h.last != nil {
		kept = store.Kept{Resumed: true, Records: h.last.Records, Notes: h.notes}
	}
	return h.build.Inputs, h.build.Fields, kept, nil
}

// takeOver decides what becomes of files in the staging directory. Without Keep they are removed. With Keep they stay
// if the directory has a journal. If it has no journal, a publication may have been stopped in the middle, and takeOver
// moves back the journal that the publication moved aside.
func (s *Stage) takeOver() error {
	aside := journalAside(s.dest.stage)
	if !s.dest.opts.Keep {
		return errors.Join(s.Folder.clear(nil), removeIfThere(s.dest.parent, aside))
	}
	if err := s.Folder.drop(movingName); err != nil { // the files of the stage are about to change
		return err
	}
	if _, err := s.Folder.root.Lstat(JournalName); err == nil {
		return removeIfThere(s.dest.parent, aside)
	}
	return s.restoreJournal()
}

// LinkFrom gives a file of the destination, which is a folder, a second name in the stage.
func (s *Stage) LinkFrom(from, name string) error {
	return s.dest.parent.Link(filepath.Join(s.dest.name(), filepath.FromSlash(from)), filepath.Join(s.dest.stage, name))
}

// Expect has PublishFile fail with store.ErrBusy if the destination is no longer the file that info describes. A
// program that does not take penstock's locks may change the file during the build, and its change would be lost.
func (s *Stage) Expect(info fs.FileInfo) { s.dest.expected = info }

// Locked reports whether the lock keeps other builders out. On a file system without locks it does not.
func (s *Stage) Locked() bool { return s.dest.lock != nil }

// Dest returns the absolute path of the destination.
func (s *Stage) Dest() string { return s.dest.path }

// Abort removes the stage. After a Publish it does nothing.
func (s *Stage) Abort() error {
	if s.done {
		return nil
	}
	s.done = true
	return errors.Join(s.remove(), s.close())
}

// remove removes the stage. If its content is published, the directory is renamed first (see retire); otherwise
// movingName goes first, so that a removal that is interrupted does not look like a complete publication.
func (s *Stage) remove() error {
	if !published(s.Folder.root) {
		return errors.Join(removeIfThere(s.Folder.root, movingName),
			private.Remove(s.dest.parent, s.dest.stage, s.Folder.root))
	}
	if err := s.dest.retire(); err != nil {
		return err
	}
	s.dest.unlock() // before the removal: while the folder exists, it says that everything is published
	return private.Remove(s.dest.parent, publishedName(s.dest.stage), s.Folder.root)
}

// Release closes the stage and leaves its files. After a Publish it does nothing.
func (s *Stage) Release() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.close()
}

// Leave is Release if the stage is kept for a later build, and Abort otherwise.
func (s *Stage) Leave() error {
	if s.dest.opts.Keep {
		return s.Release()
	}
	return s.Abort()
}

// restoreJournal moves the journal back into the staging directory after an interrupted publication. If the manifest
// that the journal announces is at the destination, or not in the staging directory, the publication was complete and
// the directory is an old dataset that has changed places with the new dataset: journal and directory are removed.
func (s *Stage) restoreJournal() error {
	aside := journalAside(s.dest.stage)
	journal, err := private.ReadFile(s.dest.parent, aside, s.Folder.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	there := func(name string) ([]byte, error) {
		return s.dest.parent.ReadFile(filepath.Join(s.dest.name(), name))
	}
	if announced(journal, there) || !announced(journal, s.Folder.root.ReadFile) {
		return errors.Join(s.Folder.clear(nil), s.dest.parent.Remove(aside))
	}
	return private.Move(s.dest.parent, aside, s.Folder.root, JournalName)
}
