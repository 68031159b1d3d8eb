package write

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// Pruned describes the generations and files that Prune removed, or would remove.
type Pruned struct {
	Generations []int `json:"generations"` // generations that are no longer kept
	InUse       []int `json:"in_use"`      // generations that are kept only because a process has them open
	Files       int64 `json:"files"`       // files that no kept generation lists
	Bytes       int64 `json:"bytes"`       // the size of these files

	// Erased is how many deleted records lost their values by this call.
	Erased int64 `json:"erased,omitempty"`

	// Postponed is how many deleted records have values in earlier generations only, which are kept for now: a process
	// has these generations open, or such a generation was the newest until recently.
	Postponed int64 `json:"postponed,omitempty"`

	// Corrupt are generations that are kept and cannot be read. While there are any, nothing is removed: a corrupt
	// manifest may list any of the files.
	Corrupt []int `json:"corrupt,omitempty"`
}

// DryRun says whether Prune only reports.
type DryRun bool

// Prune removes generations of the dataset at path that keep does not name, and the files that only these list. The
// newest generation stays, and so does each generation that is open in a process of this machine. First manifest.json
// is brought to the newest generation: it must not name one that is removed.
func Prune(path string, keep func(generation int) bool, dry DryRun) (*Pruned, error) {
	if err := Dir(path).Check(); err != nil {
		return nil, err
	}
	p := &pruning{path: path, dry: dry}
	unlock, err := p.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := p.root.Lstat(layout.Generations); errors.Is(err, fs.ErrNotExist) {
		return &p.Pruned, nil
	}
	newest, err := Forward(path)
	if err != nil {
		return nil, err
	}
	if err := p.choose(newest, keep); err != nil {
		return nil, err
	}
	if !dry {
		if err := removeStages(p.root, p.path); err != nil {
			return nil, err
		}
	}
	if err := p.find(newest); err != nil {
		return nil, err
	}
	if dry {
		return &p.Pruned, nil
	}
	return &p.Pruned, p.remove()
}

// pruning is one call of Prune.
type pruning struct {
	Pruned
	path  string
	dry   DryRun
	root  *os.Root
	held  []*os.File // locks
	files []string   // to remove; of Zarr, folders
}

// lock keeps appends, commits and other calls of Prune out: it takes the lock of builders and the lock on the folder of
// generations. Without either, a file could be published after find has listed the files that are needed.
func (p *pruning) lock() (unlock func(), err error) {
	path, err := filepath.EvalSymlinks(p.path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	building, err := Lock(parent, lockName(filepath.Base(StageDir(path))))
	if err != nil && !errors.Is(err, ErrNoLocks) {
		if errors.Is(err, store.ErrBusy) {
			err = fmt.Errorf("%w: another process appends to it or prunes it", err)
		}
		return nil, errors.Join(err, parent.Close())
	}
	unlock = func() {
		for _, f := range p.held {
			_ = f.Close()
		}
		if p.root != nil {
			_ = p.root.Close()
		}
		if building != nil {
			Unlock(parent, lockName(filepath.Base(StageDir(path))), building)
		}
		_ = parent.Close()
	}
	if p.root, err = os.OpenRoot(path); err == nil {
		err = p.lockGenerations()
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// lockGenerations locks the folder of generations alone. It waits for no other process: a commit takes a moment, and
// then Prune can be run again.
func (p *pruning) lockGenerations() error {
	f, err := p.root.Open(layout.Generations)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.held = append(p.held, f)
	if err := lease.TryExclusive(f); err != nil {
		return fmt.Errorf("another process changes it: %w", store.ErrBusy)
	}
	return nil
}

// choose locks the generations that are to be removed. Readers hold a lock on the generation that they have open, so a
// generation that cannot be locked is in use and stays.
func (p *pruning) choose(newest *store.Manifest, keep func(int) bool) error {
	numbers, err := store.Generations(p.path)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n == newest.Generation || keep(n) {
			continue
		}
		f, err := lease.Exclusive(p.path, filepath.Join(p.path, filepath.FromSlash(layout.GenerationName(n))))
		switch {
		case errors.Is(err, lease.ErrBusy):
			p.InUse = append(p.InUse, n)
			continue
		case err != nil:
			return err
		}
		p.held, p.Generations = append(p.held, f), append(p.Generations, n)
	}
	return nil
}

// orphan matches the names of files with a random tag, which the files of a column or an append get before its commit.
var orphan = regexp.MustCompile(`^[A-Za-z0-9_.-]+\.[0-9a-f]{8}(\.crc)?\.npy$`)

// find lists the files that no remaining generation needs: files of pruned generations, and files of columns and
// appends whose writer was killed between publishing them and its commit. If a manifest that stays cannot be read,
// nothing is removed, as it may list any file.
func (p *pruning) find(newest *store.Manifest) error {
	needed, pruned := NamesOf(newest), map[string]bool{}
	numbers, err := store.Generations(p.path)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		m, err := store.ReadManifest(fmt.Sprintf("%s@%d", p.path, n))
		goes := slices.Contains(p.Generations, n)
		switch {
		case Unreadable(err) && goes:
		case Unreadable(err):
			p.Corrupt = append(p.Corrupt, n)
		case err != nil:
			return err
		case goes:
			maps.Copy(pruned, NamesOf(m))
		default:
			maps.Copy(needed, NamesOf(m))
		}
	}
	if len(p.Corrupt) > 0 {
		p.Generations = nil
		return nil
	}
	being, err := p.beingWritten()
	if err != nil {
		return err
	}
	if newest.Metadata != nil {
		return p.findArrays(needed, pruned)
	}
	entries, err := private.Entries(p.root)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if needed[name] || !pruned[name] && !orphan.MatchString(name) {
			continue
		}
		info, err := p.root.Lstat(name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || slices.ContainsFunc(being, func(b fs.FileInfo) bool {
			return os.SameFile(b,
				info)
		}) {
			continue
		}
		p.files, p.Bytes = append(p.files, name), p.Bytes+info.Size()
	}
	p.Files = int64(len(p.files))
	return nil
}

// NamesOf returns the files of a generation of a flat dataset, or the folders of the arrays and groups of Zarr.
func NamesOf(m *store.Manifest) map[string]bool {
	names := make(map[string]bool)
	for name := range m.Metadata {
		names[path.Dir(name)] = true
	}
	for _, s := range m.Shards {
		for _, f := range s.Files {
			names[f.Name] = true
		}
	}
	return names
}

// beingWritten returns the files of columns that are not committed yet. A published file is a link to a file in the
// column's staging directory, so it is recognized there whatever name it has in the dataset.
func (p *pruning) beingWritten() (files []fs.FileInfo, err error) {
	entries, err := private.Entries(p.root)
	if err != nil {
		return nil, err
	}
	for _, name := range entries {
		if !IsColumnStage(name) || strings.HasSuffix(name, ".lock") {
			continue
		}
		folder, err := p.root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := folder.Readdir(-1)
		if err = errors.Join(err, folder.Close()); err != nil {
			return nil, err
		}
		files = append(files, list...)
	}
	return files, nil
}

// removeStages removes the staging directories of columns whose writers were killed, unless the column can be resumed
// or a living process holds the lock.
func removeStages(folder *os.Root, path string) error {
	entries, err := private.Entries(folder)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if stage, ok := strings.CutSuffix(name, ".building.lock"); ok && IsColumnStage(stage+".building") {
			removeAbandoned(folder, name)
			continue
		}
		dest, ok := strings.CutSuffix(strings.TrimPrefix(name, "."), ".building")
		if !ok || !IsColumnStage(name) || Unfinished(filepath.Join(path, dest)) {
			continue
		}
		stage, err := OpenStage(filepath.Join(path, dest), StageOptions{})
		if errors.Is(err, store.ErrBusy) {
			continue
		}
		if err != nil {
			return err
		}
		if err := stage.Abort(); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the manifests of generations, durably, before any file. A crash in between leaves files that no
// generation lists, which the next Prune removes; the other order would leave a generation with missing files.
func (p *pruning) remove() error {
	for _, n := range p.Generations {
		if err := p.root.Remove(layout.GenerationName(n)); err != nil {
			return err
		}
	}
	if err := p.removeTemporary(); err != nil {
		return err
	}
	if err := syncGenerations(p.root); err != nil {
		return err
	}
	for _, name := range p.files {
		if err := p.root.RemoveAll(name); err != nil {
			return err
		}
	}
	return SyncRoot(p.root)
}

// removeTemporary removes temporary files that killed commits have left. The lock on the folder says that no commit is
// running.
func (p *pruning) removeTemporary() error {
	folder, err := p.root.OpenRoot(layout.Generations)
	if err != nil {
		return err
	}
	defer folder.Close()
	entries, err := private.Entries(folder)
	if err != nil {
		return err
	}
	for _, name := range entries {
		if strings.HasPrefix(name, ".") {
			if err := folder.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
