package archive

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Open opens tar archives. It reads them once, to find types and classes and to count samples. For that, a
// compressed archive is decompressed as a whole.
func Open(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	return open(ctx, root, "tar", path, opts, selection)
}

// open is Open for archives of a kind, "tar" or "zip".
func open(ctx context.Context, root *vfs.Root, kind, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := source.FilesIn(root, path, "*."+kind+"*")
	if err != nil {
		return nil, err
	}
	a := &archive{ctx: ctx, root: root, path: path, files: files, splits: source.SplitsOfFiles(files),
		info: source.Info{Kind: kind, Name: source.BaseName(path)}}
	a.info.Splits = a.splits.Names
	if err := a.scan(kind, opts, selection); err != nil {
		return nil, fmt.Errorf("source %s: %w", path, errors.Join(err, a.Close()))
	}
	if opts.Places && kind == "tar" {
		a.tars = newTarFiles(root, files)
	}
	return a, nil
}

// scan makes the pass over all archives that decides fields and counts.
func (a *archive) scan(kind string, opts source.Options, selection []column.Selection) error {
	for _, name := range a.files {
		if kind != "zip" {
			break
		}
		z, err := openZip(a.ctx, a.root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
		}
		a.zips = append(a.zips, z)
	}
	s := newArchiveScan(kind, selection)
	a.counts = make([]fileCount, len(a.files))
	// a.tars is not set yet, so that the members that are wanted are read in order, and no places are noted.
	for group, err := range a.groups(a.ctx, 0, s.wants) {
		if err == nil {
			err = s.add(group)
		}
		if err != nil {
			return err
		}
		a.count(group)
		opts.Seen(1)
	}
	return a.decide(s, selection)
}

// OpenZip is Open for zip archives. A zip has a directory, so members are sorted by name, which puts the members of
// a sample together, and are read only when their sample is.
func OpenZip(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	return open(ctx, root, "zip", path, opts, selection)
}
