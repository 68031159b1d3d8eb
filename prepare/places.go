package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/kinds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
	"github.com/penstock/penstock/store/write/bucket"
)

// openSource opens the source that c names, as the kind that c.From says.
func openSource(ctx context.Context, c setup) (source.Source, error) {
	if c.producer != nil {
		var base *store.Manifest
		if c.Append {
			var err error
			if base, err = baseManifest(c); err != nil {
				return nil, err
			}
		}
		return openProduced(c, base)
	}
	records, err := c.records()
	if err != nil {
		return nil, err
	}
	c.progress.Begin("looking at the source", -1, "samples")
	defer c.progress.End()
	src, err := kinds.Open(ctx, c.Source, source.Options{
		NoNames: c.Names == NamesOff, Blocks: true,
		Kind: c.From, Records: records, Fields: c.Fields, Missing: c.Missing, Outside: c.Outside, Seen: c.progress.Add,
		Orient: c.Images.Rules.Orient, Divide: c.Split == nil, Lists: c.Lists,
		IsImage: func(head []byte) bool { return imagefile.Sniff(head) != "" },
	})
	if err != nil {
		return nil, err
	}
	for _, name := range c.Lists { // of a source that can have lists, they are its splits
		if !slices.Contains(src.Info().Splits, name) {
			err := fmt.Errorf("--split %s: the source has no list of units with this name; give shares, such as train=0.9,val=0.1",
				name)
			return nil, errors.Join(err, src.Close())
		}
	}
	return src, nil
}

// checkPlaces checks source and destination before any work is done: an error after hours of decoding would cost all of
// them.
func checkPlaces(c setup) error {
	if c.producer == nil {
		if err := kinds.Check(c.Source, c.From); err != nil {
			return err
		}
		if err := checkApart(c.Source, c.Dest); err != nil {
			return err
		}
	}
	return checkDest(c, "run")
}

// checkDest opens the staging directory and gives it up again, so that everything that forbids writing DEST comes
// before the source is read. what is the user's word for the work.
func checkDest(c setup, what string) error {
	left := write.Unfinished(c.Dest)
	stage, err := write.OpenStage(c.Dest, write.StageOptions{Overwrite: c.Overwrite, Append: c.Append && c.appendTo == nil,
		Keep: true})
	switch {
	case err == nil && left && !c.Resume && !c.Overwrite:
		return errors.Join(fmt.Errorf("a %s that made %s was stopped; continue it with --resume, or start over "+
			"with --overwrite, which removes %s", what, c.Dest, filepath.Base(write.StageDir(c.Dest))), stage.Release())
	case errors.Is(err, fs.ErrNotExist) && c.Append:
		return fmt.Errorf("%s does not exist, so nothing can be appended to it; create it first, without --append", c.Dest)
	case errors.Is(err, store.ErrExist) && !c.Overwrite:
		return fmt.Errorf("%s %w already; choose another name, or use --overwrite", c.Dest, store.ErrExist)
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", c.Dest, err)
	}
	if left {
		return stage.Release()
	}
	return stage.Abort()
}

// manifestAt is openManifest for a path or a URL.
func manifestAt(dest string) (*store.Manifest, error) {
	if !upload.InBucket(dest) {
		return openManifest(upload.LocalPath(dest))
	}
	b := &upload.Buckets{Context: context.Background(), Warn: func(string) {}}
	defer b.Close()
	client, u, err := b.Client(dest)
	if err != nil {
		return nil, err
	}
	return bucket.New(b.Context, client.Bucket(), u.Key, "").Folder().Manifest("")
}

// baseManifest returns the manifest of the dataset that c appends to.
func baseManifest(c setup) (*store.Manifest, error) {
	if c.appendTo != nil {
		return c.appendTo.manifest, nil
	}
	return openManifest(c.Dest)
}

// openManifest returns the manifest of a dataset.
func openManifest(path string) (*store.Manifest, error) {
	open := store.OpenFlat
	switch info, err := os.Stat(path); {
	case err == nil && !info.IsDir():
		open = func(path string) (*store.Dataset, error) { return store.OpenHDF5(path, store.OpenOptions{}) }
	case layout.IsZarr(path):
		open = func(path string) (*store.Dataset, error) { return store.OpenZarr(path, store.OpenOptions{}) }
	}
	d, err := open(path)
	switch {
	case err != nil:
		return nil, err
	case d.Manifest == nil:
		return nil, fmt.Errorf("%s was not made by this program, so nothing can be appended to it; make a dataset "+
			"of it first", path)
	}
	return d.Manifest, nil
}

// missingParents returns the folders above path that do not exist, the innermost first.
func missingParents(path string) (list []string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		if _, err := os.Lstat(parent); !errors.Is(err, os.ErrNotExist) {
			break
		}
		list = append(list, parent)
	}
	return list
}

// removeEmpty removes the folders that exist and are empty, the innermost first. It stops at the first that cannot be
// removed, as the folders around it are not empty.
func removeEmpty(folders []string) {
	for _, f := range folders {
		if os.Remove(f) != nil {
			return
		}
	}
}

// checkApart refuses a destination inside the source, whose next reader would take it for
// samples, and one that contains the source, which --overwrite would remove.
func checkApart(src, dest string) error {
	s, err := resolve(src)
	if err != nil {
		return err
	}
	d, err := resolve(dest)
	if err != nil {
		return err
	}
	switch {
	case s == d:
		return fmt.Errorf("source and destination are both %s; choose another destination", src)
	case inside(d, s):
		return fmt.Errorf("destination %s is inside the source %s; choose one outside of it", dest, src)
	case inside(s, d):
		return fmt.Errorf("source %s is inside the destination %s; choose another destination", src, dest)
	}
	for folder := filepath.Dir(d); folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := store.OpenFlat(folder); err == nil {
			return fmt.Errorf("destination %s is inside the dataset %s; choose one outside of it", dest, folder)
		}
	}
	return nil
}

func inside(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}

// resolve returns the path without symbolic links, as far as it exists. Two paths that lead to one folder by a link
// would otherwise seem apart.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, os.ErrNotExist) || parent == path {
			return filepath.Join(path, rest), nil
		}
		path, rest = parent, filepath.Join(filepath.Base(path), rest)
	}
}
