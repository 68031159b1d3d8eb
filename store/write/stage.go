package write

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// Stage is the place beside a destination where a dataset is built: the hidden folder
// ".NAME.building". Publish renames what is in it to the destination; Abort removes it;
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

// OpenStage prepares to build dest. An existing dest is ErrExist unless opts allow it, and
// then it must be something that penstock can know to be a dataset: a folder with a
// manifest, or a file. A dest that is being built is store.ErrBusy; one to append to that is not
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
	if err := s.acquire(); err != nil {
		if errors.Is(err, store.ErrBusy) {
			return err
		}
		return cmp.Or(s.checkDest(), err) // of a folder that cannot be written to, first what is there
	}
	done, err := s.tidy()
	if err != nil {
		return err
	}
	if done && s.opts.Append && s.opts.Keep {
		return fmt.Errorf("%s: these records are %w", s.dest, store.ErrCommitted)
	}
	if err := s.checkDest(); err != nil {
		return err
	}
	if s.folder, err = private.Make(s.parent, s.name); err != nil {
		return err
	}
	if s.handle, err = s.folder.Open("."); err != nil {
		return err
	}
	return s.takeOver()
}

// lockName is the name of the file that keeps a second builder out. It is beside the stage, so that the lock
// holds until the stage has become the destination.
func lockName(stage string) string { return stage + ".lock" }

// acquire locks the destination. On a file system without locks nobody is kept out.
func (s *Stage) acquire() (err error) {
	s.lock, err = Lock(s.parent, lockName(s.name))
	switch {
	case errors.Is(err, store.ErrBusy):
		return fmt.Errorf("%s is %w: another process is building it in %s", s.dest, store.ErrBusy, stageDir(s.dest))
	case errors.Is(err, ErrNoLocks):
		return nil
	}
	return err
}

// ErrNoLocks is the error of Lock on a file system without locks, such as Lustre that is mounted without flock.
var ErrNoLocks = errors.New("the file system has no locks")

// Lock makes the file name in a folder if it is not there, and locks it until it is closed or the process ends. While
// another process holds the lock, the error is store.ErrBusy. [Unlock] removes the file before it lets go, so a lock
// counts only while its file still has the name. It keeps out the processes of this machine; processes elsewhere only
// where the file system shares its locks between machines.
func Lock(folder *os.Root, name string) (*os.File, error) {
	for {
		lock, err := private.OpenLock(folder, name)
		if err != nil {
			return nil, err
		}
		if err := lockFile(lock); err != nil {
			if errors.Is(err, ErrNoLocks) {
				_ = folder.Remove(name)
			}
			return nil, errors.Join(err, lock.Close())
		}
		if sameFile(lock, folder, name) {
			return lock, nil
		}
		_ = lock.Close()
	}
}

// Unlock removes the file of a lock, and lets go. A file that cannot be removed is locked by the next process.
func Unlock(folder *os.Root, name string, lock *os.File) {
	_ = folder.Remove(name)
	_ = lock.Close()
}

// close lets go of all that is open.
func (s *Stage) close() (err error) {
	if s.folder != nil {
		err = errors.Join(err, s.folder.Close())
	}
	if s.handle != nil {
		err = errors.Join(err, s.handle.Close())
	}
	s.unlock()
	return errors.Join(err, s.parent.Close())
}

// unlock lets others build.
func (s *Stage) unlock() {
	if s.lock != nil {
		Unlock(s.parent, lockName(s.name), s.lock)
		s.lock = nil
	}
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

// ReadUnfinished returns the inputs of a build of dest that was left, and what it has kept. The inputs are nil
// if there is none.
func ReadUnfinished(dest string) (inputs map[string]string, kept store.Kept, err error) {
	if dest, err = filepath.Abs(dest); err != nil {
		return nil, store.Kept{}, err
	}
	data, err := os.ReadFile(filepath.Join(stageDir(dest), JournalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, store.Kept{}, nil
	}
	if err != nil {
		return nil, store.Kept{}, err
	}
	h, err := readJournal(data)
	if err != nil || h == nil {
		return nil, store.Kept{}, err
	}
	if h.last != nil {
		kept = store.Kept{Resumed: true, Records: h.last.Records, Notes: h.notes}
	}
	return h.build.Inputs, kept, nil
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
	if !published(folder) {
		return false, nil
	}
	if err := s.retire(); err != nil {
		return true, err
	}
	return true, private.Remove(s.parent, spentName(s.name), folder)
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
		return fmt.Errorf("%s %w already; choose another name or allow to overwrite it", s.dest, store.ErrExist)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w and is neither a file nor a folder; it will not be overwritten", s.dest, store.ErrExist)
	}
	if info.IsDir() {
		there := func(name string) bool {
			_, err := s.parent.Lstat(filepath.Join(filepath.Base(s.dest), name))
			return err == nil
		}
		if !slices.ContainsFunc(manifests, there) {
			return fmt.Errorf("%s %w and has no %s, so it is not a dataset; it will not be overwritten: remove it yourself if it can go", s.dest, store.ErrExist, store.ManifestName)
		}
		if err := checkWritable(s.dest); err != nil {
			return fmt.Errorf("the folder %s cannot be changed: %w; choose one that you may write to", s.dest, err)
		}
	}
	return nil
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

// clear removes all files but those to keep: the journal first, as it lists the others.
func (s *Stage) clear(keep map[string]bool) error {
	if !keep[JournalName] {
		if err := s.drop(JournalName); err != nil {
			return err
		}
	}
	return private.Empty(s.folder, slices.Collect(maps.Keys(keep))...)
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
func (s *Stage) sync() error { return SyncRoot(s.folder) }

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

// Create makes a new file in the folder, or in a folder of it.
func (s *Stage) Create(name string) (*os.File, error) { return s.create(name) }

// LinkFrom makes a file of the destination, which is a folder, a file of the stage, too.
func (s *Stage) LinkFrom(from, name string) error {
	return s.parent.Link(filepath.Join(filepath.Base(s.dest), filepath.FromSlash(from)), filepath.Join(s.name, name))
}

// create makes a new file in the folder.
func (s *Stage) create(name string) (*os.File, error) { return private.Create(s.folder, name, 0o666) }

// Link gives a finished file of the same user, which must be on disk, a name in the stage, too. Where there are no links,
// as between file systems, it is copied.
func (s *Stage) Link(path, name string) error {
	if os.Link(path, s.Through(name)) == nil {
		return nil
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := s.create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		return errors.Join(err, to.Close())
	}
	return SyncFile(to)
}

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
	if !published(s.folder) {
		return errors.Join(removeIfThere(s.folder, movingName), private.Remove(s.parent, s.name, s.folder))
	}
	if err := s.retire(); err != nil {
		return err
	}
	s.unlock() // first: a folder that is still there says that all is published
	return private.Remove(s.parent, spentName(s.name), s.folder)
}

// retire gives the stage, which is used up, another name: while it is removed, nobody takes it for one that was
// just begun.
func (s *Stage) retire() error { return s.parent.Rename(s.name, spentName(s.name)) }

// Release lets go of the stage and leaves what is in it. After a Publish it does nothing.
func (s *Stage) Release() error {
	if s.done {
		return nil
	}
	s.done = true
	return s.close()
}

// Leave is Release where the stage is kept for a later build, and Abort elsewhere.
func (s *Stage) Leave() error {
	if s.opts.Keep {
		return s.Release()
	}
	return s.Abort()
}
