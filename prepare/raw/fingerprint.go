package raw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/prepare/source"
)

// ErrUnknown marks a source whose changes cannot be noticed, as nobody says which files it is made of.
var ErrUnknown = errors.New("its changes could not be noticed")

// recipe names the way from samples to records. It changes where the same samples become other records.
const recipe = "keep-encoded 1"

// Fingerprint returns a digest of the source's listing: names, sizes and times of all files, and the fields that are
// made of them. It differs after a file was changed, added or removed.
func (s *Source) Fingerprint(ctx context.Context) (string, error) {
	l, h := &s.records, sha256.New()
	if l.outside {
		return "", fmt.Errorf("source %s: it may name files anywhere: %w", l.path, ErrUnknown)
	}
	id, err := l.identity("", "")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s %s\n", recipe, id)
	if l.info.Kind == "imagefolder" {
		err = l.stampSamples(ctx, h)
	} else {
		err = l.stampFiles(ctx, h)
	}
	if err != nil {
		return "", fmt.Errorf("source %s: %w", l.path, err)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func stamp(h hash.Hash, name string, info fs.FileInfo) {
	fmt.Fprintf(h, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
}

// stampSamples enters the file of each sample, wherever links lead.
func (l *records) stampSamples(ctx context.Context, h hash.Hash) error {
	for i := range l.listing.len() {
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sample, err := l.listing.sample(i)
		if err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(l.path, filepath.FromSlash(sample.Name)))
		if err != nil {
			return source.WithoutPath(err)
		}
		stamp(h, sample.Name, info)
	}
	return nil
}

// stampFiles enters the files of the source. A table that names image files is stamped with its folder, which has them.
func (l *records) stampFiles(ctx context.Context, h hash.Hash) error {
	files, err := source.Files(l.path)
	if err != nil {
		return err
	}
	named := slices.Contains([]string{"csv", "jsonl", "coco"}, l.info.Kind) &&
		slices.ContainsFunc(l.info.Fields, func(f source.Field) bool { return f.IsBytes() })
	for _, file := range files {
		if info, err := os.Stat(file); named && err == nil && !info.IsDir() {
			file = filepath.Dir(file)
		}
		if err := stampTree(ctx, h, file); err != nil {
			return err
		}
	}
	return nil
}

func stampTree(ctx context.Context, h hash.Hash, root string) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
			return nil
		}
		if err != nil {
			return err
		}
		if info.IsDir() && path != root {
			return fmt.Errorf("%s is a link to a folder: %w", path, ErrUnknown)
		}
		stamp(h, path, info)
		return nil
	})
}
