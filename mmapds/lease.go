package mmapds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/lease"
	"github.com/penstock/penstock/store"
)

// errPruned says that the generation of a manifest was removed after it was read.
var errPruned = errors.New("its generation was removed while it was being opened")

// leaseGeneration locks the generation of a flat dataset, so that its files stay until the lock is closed: its own
// manifest or, where that has no name of its own yet, manifest.json, which is the same file.
func leaseGeneration(d *store.Dataset) (*os.File, error) {
	own := filepath.Join(d.Path, filepath.FromSlash(layout.GenerationName(d.Manifest.Generation)))
	for range 2 {
		f, err := lease.Shared(own)
		if errors.Is(err, fs.ErrNotExist) {
			f, err = lease.Shared(filepath.Join(d.Path, layout.ManifestName))
		}
		switch {
		case errors.Is(err, lease.ErrBusy):
			return nil, errPruned
		case err != nil:
			return nil, fmt.Errorf("mmapds: open %q: %w", d.Path, err)
		}
		if there, err := os.Stat(own); err != nil || isFile(f, there) {
			if err != nil && f.Name() == own {
				return nil, errors.Join(errPruned, f.Close())
			}
			return f, nil
		}
		if err := f.Close(); err != nil { // it got its name meanwhile
			return nil, err
		}
	}
	return nil, errPruned
}

func isFile(f *os.File, there fs.FileInfo) bool {
	is, err := f.Stat()
	return err == nil && os.SameFile(is, there)
}
