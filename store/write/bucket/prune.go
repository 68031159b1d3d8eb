package bucket

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Prune removes the generations that keep does not name, and files that no generation lists and that are older than
// age: a younger file may belong to a column that is being written. The newest generation stays. If a manifest that
// stays cannot be read, nothing is removed, as it may list any file.
func (h *Home) Prune(keep func(generation int) bool, age time.Duration, dry write.DryRun) (*write.Pruned, error) {
	p := &pruning{home: h, before: time.Now().Add(-age), needed: make(map[string]bool)}
	if err := p.read(keep); err != nil || len(p.Corrupt) > 0 {
		return &p.Pruned, err
	}
	if !dry {
		if err := p.removeGenerations(); err != nil {
			return nil, err
		}
	}
	if err := p.find(); err != nil || bool(dry) {
		return &p.Pruned, err
	}
	for _, name := range p.files {
		if err := h.remove(name); err != nil {
			return nil, err
		}
	}
	return &p.Pruned, nil
}

// pruning is one call of Prune.
type pruning struct {
	write.Pruned
	home   *Home
	before time.Time // files that were written later stay
	newest int       // generation
	zarr   bool
	needed map[string]bool // files of generations that stay; of Zarr, folders
	pruned []generation
	files  []string // to remove
}

// generation is a generation that is to be removed. The text of its manifest is kept for takeBack.
type generation struct {
	number   int
	text     []byte          // of its manifest
	manifest *store.Manifest // nil if that cannot be read
}

// read decides which generations are removed, and lists the files that the others need.
func (p *pruning) read(keep func(int) bool) error {
	numbers, err := p.home.Folder().Generations()
	if err != nil {
		return err
	}
	p.newest = numbers[len(numbers)-1]
	held, err := p.held()
	if err != nil {
		return err
	}
	for _, n := range numbers {
		text, m, err := p.generation(n)
		stays := n == p.newest || keep(n)
		switch {
		case err != nil && !write.Unreadable(err):
			return err
		case err != nil && stays:
			p.Corrupt = append(p.Corrupt, n)
		case stays:
			p.need(m)
			p.zarr = p.zarr || m.Metadata != nil
		case slices.Contains(held, n):
			p.InUse = append(p.InUse, n)
			p.need(m)
		default:
			p.pruned, p.Generations = append(p.pruned, generation{n, text, m}), append(p.Generations, n)
		}
	}
	if len(p.Corrupt) > 0 {
		p.Generations = nil
	}
	return nil
}

// generation reads the manifest of generation n. The newest generation may have its manifest in manifest.json only.
func (p *pruning) generation(n int) (text []byte, m *store.Manifest, err error) {
	if text, err = fs.ReadFile(p.home.objects, layout.GenerationName(n)); errors.Is(err, fs.ErrNotExist) && n == p.newest {
		m, text, err = p.home.Folder().Find(strconv.Itoa(n))
		return text, m, err
	}
	if err == nil {
		m, err = store.DecodeManifest(text)
	}
	return text, m, err
}

func (p *pruning) need(m *store.Manifest) {
	if m == nil {
		return
	}
	maps.Copy(p.needed, write.NamesOf(m))
}

// held returns the generations that processes hold. A hold that is older than the age of Prune belongs to a process
// that was killed, and is removed.
func (p *pruning) held() (numbers []int, err error) {
	entries, err := fs.ReadDir(p.home.objects, holds)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		name := holds + "/" + e.Name()
		if old := info.ModTime(); !old.IsZero() && old.Before(p.before) {
			p.files = append(p.files, name)
			continue
		}
		text, err := fs.ReadFile(p.home.objects, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var t store.Tag
		if err == nil {
			err = json.Unmarshal(text, &t)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		numbers = append(numbers, t.Generation)
	}
	return numbers, nil
}

// removeGenerations removes manifests. Then it looks for tags and holds that were made meanwhile, and for generations
// that were committed meanwhile, and takes back what they need.
func (p *pruning) removeGenerations() error {
	text, _, err := p.generation(p.newest)
	if err != nil {
		return err
	}
	// manifest.json must not name a generation that is removed, and a killed writer may have left it behind
	files, err := write.FilesOf(p.home.objects, text)
	if err == nil {
		err = p.home.forward(p.newest, files)
	}
	if err != nil {
		return err
	}
	for _, g := range p.pruned {
		if err := p.home.remove(layout.GenerationName(g.number)); err != nil {
			return err
		}
	}
	return p.takeBack()
}

// takeBack creates manifests again that were removed while somebody began to hold or tag their generations. A bucket
// has no lock over several objects, so prune removes manifests first, then looks again for holds and tags, and only
// then removes files. A reader that came in between finds its manifest again, and no file was lost.
func (p *pruning) takeBack() error {
	p.files = nil
	wanted, err := p.held()
	if err != nil {
		return err
	}
	tags, err := p.home.Folder().Tags()
	if err != nil {
		return err
	}
	for _, t := range tags {
		wanted = append(wanted, t.Generation)
	}
	for _, g := range p.pruned {
		if !slices.Contains(wanted, g.number) {
			continue
		}
		if err := p.home.create(layout.GenerationName(g.number), g.text); err != nil {
			return err
		}
		p.need(g.manifest)
		p.InUse = append(p.InUse, g.number)
		p.Generations = slices.DeleteFunc(p.Generations, func(n int) bool { return n == g.number })
	}
	for n := p.newest + 1; ; n++ {
		_, m, err := p.generation(n)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		p.need(m)
	}
}

// find lists the files that no remaining generation needs: .npy objects in the folder, of any name, since an
// interrupted Prune may have removed the manifest that listed them.
func (p *pruning) find() error {
	if p.zarr {
		return p.findArrays()
	}
	for o, err := range p.home.client.List(p.home.ctx, strings.TrimPrefix(p.home.objects.Key("")+"/", "/"), "/") {
		if err != nil {
			return err
		}
		name := path.Base(o.Key)
		if o.Folder || !strings.HasSuffix(name, ".npy") || p.needed[name] || !p.old(o) {
			continue
		}
		p.files, p.Files, p.Bytes = append(p.files, name), p.Files+1, p.Bytes+o.Size
	}
	return nil
}

// old reports whether an object is too old to belong to a column that is being written. An object without a time counts
// as young.
func (p *pruning) old(o remote.Object) bool {
	return !o.Modified.IsZero() && o.Modified.Before(p.before)
}
