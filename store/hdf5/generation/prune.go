package generation

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store/write"
)

// RemoveTag implements write.Home.
func (f File) RemoveTag(name string) error {
	return again(string(f), func(h *layout.HDF5History) error {
		i := slices.IndexFunc(h.Tags, func(t layout.HDF5Tag) bool { return t.Name == name })
		if i < 0 {
			return fmt.Errorf("it has no tag %q: %w", name, fs.ErrNotExist)
		}
		h.Tags = slices.Delete(slices.Clone(h.Tags), i, i+1)
		return nil
	})
}

// errNothing ends a change that has nothing to change.
var errNothing = errors.New("nothing to change")

// Prune forgets the earlier generations of the file that keep does not name. Their bytes stay in the file, and
// programs that have one open keep it.
func (f File) Prune(keep func(generation int) bool, dry write.DryRun) (*write.Pruned, error) {
	p := &write.Pruned{InFile: true}
	err := again(string(f), func(h *layout.HDF5History) error {
		var kept []layout.HDF5Generation
		for _, g := range h.Generations {
			if keep(g.Generation) {
				kept = append(kept, g)
			} else {
				p.Generations = append(p.Generations, g.Generation)
			}
		}
		if dry || len(p.Generations) == 0 {
			return errNothing
		}
		h.Generations = kept
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	if err == nil && !dry {
		err = write.RemoveColumnStages(string(f))
	}
	return p, err
}
