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

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// ErrUnknown marks a source whose changes cannot be noticed, as nobody says which files it is made of.
var ErrUnknown = errors.New("its changes could not be noticed")

// recipe names the way from samples to records. It changes where the same samples become other records.
const recipe = "keep-encoded 1"

// stamps is a digest of files, and the number of their bytes.
type stamps struct {
	hash.Hash
	bytes int64
}

// Fingerprint returns a digest of the source's listing: names, sizes and times of all files, and the fields that are
// made of them. It differs after a file was changed, added or removed. The files have that many bytes.
func (s *Source) Fingerprint(ctx context.Context) (digest string, bytes int64, err error) {
	l, h := &s.records, &stamps{Hash: sha256.New()}
	if l.outside {
		return "", 0, fmt.Errorf("source %s: it may name files anywhere: %w", s.Name(), ErrUnknown)
	}
	id, err := l.identity("", "")
	if err != nil {
		return "", 0, err
	}
	fmt.Fprintf(h, "%s %s\n", recipe, id)
	if l.info.Kind == "imagefolder" && s.place.fsys == nil {
		err = l.stampSamples(ctx, h)
	} else {
		err = l.stampFiles(ctx, h)
	}
	if err != nil {
		return "", 0, s.place.buckets.Explain(fmt.Errorf("source %s: %w", l.path, err))
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), h.bytes, nil
}

// stamp enters a file. The version of one in a bucket is what the bucket says.
func stamp(h *stamps, name string, info fs.FileInfo) error {
	h.bytes += info.Size()
	if version, ok := info.Sys().(vfs.Version); ok {
		if version == "" {
			return fmt.Errorf("%s: the server does not say which version of the file it has: %w", name, ErrUnknown)
		}
		fmt.Fprintf(h, "%q %d %q\n", name, info.Size(), version)
		return nil
	}
	fmt.Fprintf(h, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
	return nil
}

// eachSample calls f with all samples.
func (l *records) eachSample(ctx context.Context, f func(source.Sample) error) error {
	for i := range l.listing.len() {
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sample, err := l.listing.sample(i)
		if err == nil {
			err = f(sample)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stampSamples enters the file of each sample, wherever links lead.
func (l *records) stampSamples(ctx context.Context, h *stamps) error {
	return l.eachSample(ctx, func(s source.Sample) error {
		info, err := os.Stat(filepath.Join(l.path, filepath.FromSlash(s.Name)))
		if err != nil {
			return source.WithoutPath(err)
		}
		return stamp(h, s.Name, info)
	})
}

// stampFiles enters the files of the source, and those that rows of a table name. Of a table in a bucket, that is the
// folder which has them, as it is one listing.
func (l *records) stampFiles(ctx context.Context, h *stamps) error {
	files, err := source.Files(l.path)
	if err != nil {
		return err
	}
	named := slices.Contains([]string{"csv", "jsonl", "coco"}, l.info.Kind) &&
		slices.ContainsFunc(l.info.Fields, func(f source.Field) bool { return f.IsBytes() })
	rows := named && l.info.Kind != "coco" && !vfs.Mounted(l.path)
	for _, file := range files {
		if info, err := vfs.Stat(file); named && !rows && err == nil && !info.IsDir() {
			file = filepath.Dir(file)
		}
		if err := stampTree(ctx, h, file, filepath.Dir(l.path)); err != nil {
			return err
		}
	}
	if rows {
		return l.stampNamed(ctx, h)
	}
	return nil
}

// stampNamed enters the files that samples name.
func (l *records) stampNamed(ctx context.Context, h *stamps) error {
	var scratch source.Values
	return l.eachSample(ctx, func(s source.Sample) error {
		row, ok := s.Data.(source.Naming)
		if !ok {
			return nil
		}
		files, err := row.Files(&scratch)
		if err != nil {
			return nil // a bad row, which the table's own stamp has
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				fmt.Fprintf(h, "%q cannot be read\n", file)
			} else if err := stamp(h, file, info); err != nil {
				return err
			}
		}
		return nil
	})
}

// stampTree enters a file, or all files below a folder. Files of buckets have names from base on, as the path of a
// bucket is that of a process.
func stampTree(ctx context.Context, h *stamps, root, base string) error {
	return vfs.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := statEntry(path, e)
		if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
			return nil
		}
		if err != nil {
			return err
		}
		if info.IsDir() && path != root {
			return fmt.Errorf("%s is a link to a folder: %w", path, ErrUnknown)
		}
		if vfs.Mounted(path) {
			if path, err = filepath.Rel(base, path); err != nil {
				return err
			}
		}
		return stamp(h, path, info)
	})
}

// statEntry returns what a path leads to; of a bucket that is in the listing.
func statEntry(path string, e fs.DirEntry) (fs.FileInfo, error) {
	if vfs.Mounted(path) {
		return e.Info()
	}
	return os.Stat(path)
}
