package part

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store/write"
)

// Attempt is where this machine builds the part whose dataset will be at path. The name has the ID of the turn, so that
// machines that make the same part never write to the same files.
func (t *Turn) Attempt(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+t.id)
}

// Publish renames the part from an attempt of t to its final name, and then writes the part's file, which makes it
// complete. A crash in between leaves a dataset without a file, which the next run of the rank replaces or uses. To
// overwrite, the old file is removed before the old dataset is touched, so that a merge never takes a file for a
// dataset that is not its own.
//
// If another machine has published the same part, the other machine's part stays, as a merge may be reading it. If
// the other part has other records, that is an error, unless it is to be replaced.
func (p *Part) Publish(t *Turn, overwrite bool) error {
	folder, err := os.OpenRoot(filepath.Dir(p.Path))
	if err != nil {
		return err
	}
	defer folder.Close()
	attempt := t.Attempt(p.Path)
	if overwrite {
		err = removeIfThere(folder, filepath.Base(File(p.Path)))
	} else {
		var old *Part
		if old, err = p.Same(p.Path); old != nil {
			return errors.Join(p.agree(old), t.Tidy(p.Path))
		}
	}
	if err == nil {
		err = p.place(folder, attempt, overwrite)
	}
	if err == nil {
		err = p.seal(folder, attempt)
	}
	if err != nil {
		return err
	}
	return t.Tidy(p.Path)
}

// Tidy removes attempts that a killed process of this machine has left, if the part exists.
func (t *Turn) Tidy(path string) error {
	attempt := t.Attempt(path)
	err := errors.Join(private.RemoveOwn(attempt+".old"), private.RemoveOwn(attempt))
	for _, dest := range []string{attempt, File(attempt)} {
		stage, openErr := write.OpenStage(dest, write.StageOptions{Overwrite: true})
		if err = errors.Join(err, openErr); openErr == nil {
			err = errors.Join(err, stage.Abort())
		}
	}
	return err
}

// agree returns an error if the part has other records than the same rank's part that another machine has published.
func (p *Part) agree(old *Part) error {
	if p.ID != old.ID || p.Records != old.Records {
		return fmt.Errorf("rank %d was made twice, with different records (%s, and %s now): does its source change? To "+
			"replace the part, run the rank with --overwrite",
			p.Rank, describe(old), describe(p))
	}
	return nil
}

func describe(p *Part) string { return fmt.Sprintf("%d of dataset %s", p.Records, p.ID) }

// place renames the attempt to the part's name, and syncs the folder before the part's file is written: after a power
// failure there must be no file without its dataset. A folder that exists already is either the same dataset, whose
// process has not written its file yet, or left over from a run with another plan.
func (p *Part) place(folder *os.Root, attempt string, overwrite bool) error {
	from, to := filepath.Base(attempt), filepath.Base(p.Path)
	if p.Records == 0 {
		return errors.Join(private.RemoveOwn(attempt), private.RemoveOwn(p.Path))
	}
	for n := 0; ; n++ {
		err := rename(folder, from, to)
		if err == nil {
			return write.SyncRoot(folder)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		there := p.There()
		switch {
		case there == nil && !overwrite:
			return private.RemoveOwn(attempt)
		case !errors.Is(there, fs.ErrNotExist):
			err = setAside(folder, to, from+".old")
		case n < lateTries: // the folder's listing is stale, as on NFS for up to a minute
			time.Sleep(latePause)
			continue
		}
		if err != nil {
			return fmt.Errorf("part %d of %d: %w; run the rank again", p.Rank, p.Plan.Size, err)
		}
	}
}

// How long place waits for the file of an existing folder.
const (
	lateTries = 900
	latePause = 100 * time.Millisecond
)

// rename renames a folder to a name that nothing has. The system's rename alone would replace an empty folder.
func rename(folder *os.Root, from, to string) error {
	if _, err := folder.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: filepath.Join(folder.Name(), to), Err: fs.ErrExist}
	}
	return folder.Rename(from, to)
}

// setAside removes a folder that has the name of the part. It is renamed first, so that nobody finds half of it under
// the name of the part. Another machine may do the same at the same time.
func setAside(folder *os.Root, name, aside string) error {
	path := filepath.Join(folder.Name(), aside)
	if err := private.RemoveOwn(path); err != nil {
		return err
	}
	if err := folder.Rename(name, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return private.RemoveOwn(path)
}

// seal writes the part's file under the name of the attempt, and renames it: a reader finds the whole file or no
// file. Several machines may seal the part at the same time, as they write the same bytes.
func (p *Part) seal(folder *os.Root, attempt string) error {
	text, err := p.encode()
	if err == nil {
		err = WriteDurably(File(attempt), text, FinalMode)
	}
	if err == nil {
		err = folder.Rename(filepath.Base(File(attempt)), filepath.Base(File(p.Path)))
	}
	if err != nil {
		return err
	}
	return write.SyncRoot(folder)
}

func removeIfThere(folder *os.Root, name string) error {
	if err := folder.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
