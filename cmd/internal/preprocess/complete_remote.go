package preprocess

import (
	"errors"

	"github.com/penstock/penstock/cmd/internal/source"
	"github.com/penstock/penstock/store"
)

// complete is for a flat dataset in a bucket what the function complete is: where present found
// one, and --resume is to continue the run that made it, that is done. info describes its source,
// or says that it was made in another way. What the run has left on this machine is removed.
// Without such a dataset the error is that of present.
func (b *buckets) complete(c Config, d *destination, present error, info func(*store.Manifest) (source.Info, error)) (*Summary, error) {
	if !errors.Is(present, store.ErrExist) || !c.Resume || c.World.Size > 0 || c.format() != formatFlat {
		return nil, present
	}
	text, _, err := d.client.ReadAll(d.ctx, d.manifestKey(formatFlat), maxPart)
	if err != nil {
		return nil, err
	}
	m, err := store.DecodeManifest(text)
	if err != nil {
		return nil, present
	}
	of, err := info(m)
	if err != nil {
		return nil, err
	}
	if c.Dest, err = b.mount(d.text); err != nil {
		return nil, err
	}
	s, err := c.describe(m, of)
	if err != nil {
		return nil, err
	}
	s.Dest = d.url.String()
	return s, d.removeSpool()
}

// ofMade describes the source of a dataset that is what this Config would make.
func (c Config) ofMade(m *store.Manifest) (source.Info, error) {
	if list := c.differences(m); list != nil {
		return source.Info{}, madeOtherwise(c.Dest, list)
	}
	return infoOf(m), nil
}

// merged is complete for a merge; its parts, which are in folders, are removed if they are to be.
func (b *buckets) merged(m, local MergeConfig, d *destination, folders []string, present error) (*Summary, error) {
	parts, err := findParts(local.Parts)
	if err != nil {
		return nil, present
	}
	p := parts[0].Plan
	local.Dest = d.local
	c, err := p.configOf(local, local.Parts)
	if err != nil {
		return nil, err
	}
	s, err := b.complete(c, d, present, func(m *store.Manifest) (source.Info, error) {
		if !p.became(m) {
			return source.Info{}, present
		}
		return p.info(), nil
	})
	if err != nil {
		return nil, err
	}
	s.Source.Path = b.text(s.Source.Path)
	if m.RemoveParts {
		err = b.removeAll(folders, s.ID)
	}
	return s, err
}
