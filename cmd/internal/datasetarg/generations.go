package datasetarg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/edit"
)

// Generations is a DATASET whose generations are listed or changed: a path on this machine, or a
// URL. The caller closes it.
type Generations struct {
	Dataset *edit.Dataset
	Path    string // as the user gave it, without the generation and without secrets
	Named   string // the generation in the argument, a number or a tag; "" is the newest

	bucket remote.Bucket // nil for a path
}

// OpenGenerations opens a DATASET whose generations are listed. The part after the last "@" is a
// generation only if no dataset has the whole name, which mirror.SplitGeneration finds out for a
// URL; file:// URLs become paths.
func OpenGenerations(ctx context.Context, arg string) (*Generations, error) {
	if !remote.IsURL(arg) {
		folder, named, _ := layout.SplitGeneration(arg)
		return &Generations{Dataset: edit.At(folder), Path: folder, Named: named}, nil
	}
	u, err := remote.ParseURL(arg)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return OpenGenerations(ctx, filepath.Join(filepath.FromSlash(u.Bucket), filepath.FromSlash(u.Key)))
	}
	b, u, err := cloud.Open(ctx, arg)
	if err != nil {
		return nil, err
	}
	key, named, err := mirror.SplitGeneration(ctx, b, u.Key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", remote.Redact(arg), err), b.Close())
	}
	at, query, options := strings.Cut(arg, "?")
	if named != "" {
		at = strings.TrimSuffix(strings.TrimSuffix(at, "/"), "@"+named)
	}
	if options {
		at += "?" + query
	}
	return &Generations{Dataset: edit.InBucket(ctx, b, key, ""), Path: remote.Redact(at), Named: named, bucket: b}, nil
}

// conditional lists the schemes of stores that can create a file or an object only if it does not
// exist. A change is committed by creating the next manifest in this way. Without such a create,
// two writers could both believe that they committed, and the later one would silently undo the
// earlier one.
var conditional = []string{"file", "s3", "gs", "azblob"}

// OpenWritable is OpenGenerations for a DATASET that is changed; it refuses stores without
// conditional writes.
func OpenWritable(ctx context.Context, arg string) (*Generations, error) {
	scheme, _, _ := strings.Cut(arg, "://")
	if remote.IsURL(arg) && !slices.Contains(conditional, scheme) {
		return nil, fmt.Errorf("%s: datasets of %s:// are not changed, as writers there cannot be kept apart; change it in "+
			"a folder, or in a bucket of s3://, gs:// or azblob://: %w", remote.Redact(arg), scheme, store.ErrUnsupported)
	}
	return OpenGenerations(ctx, arg)
}

// OpenChanging is OpenWritable for commands that change the newest generation, and therefore refuse
// an argument that names a generation.
func OpenChanging(ctx context.Context, arg string) (*Generations, error) {
	g, err := OpenWritable(ctx, arg)
	if err != nil || g.Named == "" {
		return g, err
	}
	if g.IsFile() {
		return nil, fmt.Errorf("%s: %w", arg, layout.OneGeneration(g.Path))
	}
	return nil, errors.Join(fmt.Errorf("%s: only the newest generation can be changed; to make this one the newest, "+
		"run: %s: %w", remote.Redact(arg), shell.Penstock("restore", remote.Redact(arg)), store.ErrUnsupported), g.Close())
}

// Manifest returns the manifest of the generation that the argument names.
func (g *Generations) Manifest() (*store.Manifest, error) {
	m, err := g.Dataset.Manifest(g.Named)
	switch {
	case err != nil && g.Named != "":
		return nil, fmt.Errorf("%s@%s: %w", g.Path, g.Named, err)
	case err != nil && g.Dataset.InBucket():
		return nil, fmt.Errorf("%s: %w", g.Path, err)
	}
	return m, err
}

// IsFile reports whether the dataset is a regular file on this machine, which means HDF5: a change
// replaces the file instead of adding a generation.
func (g *Generations) IsFile() bool {
	info, err := os.Stat(g.Path)
	return g.bucket == nil && err == nil && info.Mode().IsRegular()
}

// Close closes the bucket of a URL.
func (g *Generations) Close() error {
	if g.bucket == nil {
		return nil
	}
	return g.bucket.Close()
}

// Done describes the change that made a generation, for a list. An entry without a change is the
// first generation, or comes from a version that recorded none.
func Done(e edit.Entry) string {
	switch c := e.Change; {
	case e.Corrupt != "":
		return "cannot be read"
	case c == nil && e.Generation == 1:
		return "new: " + strings.Join(e.Columns, ", ")
	case c == nil:
		return "changed by an earlier version"
	case c.Records > 0:
		verb, _, _ := strings.Cut(c.Operation, " ")
		text := fmt.Sprintf("%s %s", verb, units.Counted(c.Records, "record"))
		if c.Where != "" && c.By == "" {
			text += " where " + c.Where
		}
		return text
	case c.From > 0:
		return fmt.Sprintf("%s %d", c.Operation, c.From)
	default:
		return strings.TrimSpace(c.Operation + " " + strings.Join(c.Columns, ", "))
	}
}
