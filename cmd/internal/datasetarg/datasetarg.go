// Package datasetarg opens the DATASET argument of a command as a Source of records. A DATASET is a
// dataset on this machine, the URL of a dataset, a view, or raw samples that were not prepared.
//
//	Cache        the folder for fetched records and for datasets of raw samples, with its flags
//	Cache.Any    opens a DATASET for reading records
//	Cache.Local  replaces URLs by complete local copies, for commands that read files
//	Generations  a DATASET whose generations are listed or changed
//
// It fetches records of URLs into the cache and makes datasets of raw samples there, and writes nothing else.
//
// Cache keeps the copies of Cache.Local open until Close, as the cache may evict a dataset that no
// process has open.
package datasetarg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/rawcache"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/prepare/raw"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// Cache says where commands keep what they fetch and build. The zero value is the user's cache
// folder without a limit.
type Cache struct {
	Dir   string            // empty means the user's cache folder
	Size  int64             // 0 means as much as the disk allows
	size  string            // of --cache-size, which Settle parses into Size
	urls  bool              // the command builds nothing from raw samples
	local []*mirror.Dataset // opened by Local

	// Events makes progress an event a line, for a program that reads standard error.
	Events bool

	bucket func(ctx context.Context, url string) (remote.Bucket, *remote.URL, error) // nil means cloud.Open
}

// progress returns the display of how far the opening of a dataset is.
func (c *Cache) progress() *cli.Progress {
	if c.Events {
		return cli.NewJSONProgress(os.Stderr)
	}
	return cli.NewProgress(os.Stderr, filepath.Base(os.Args[0]), false)
}

// URLFlags registers the flags of Flags for commands that build nothing from raw samples.
func (c *Cache) URLFlags(f *pflag.FlagSet) {
	c.Flags(f)
	c.urls = true
	f.Lookup("cache-dir").Usage = "`FOLDER` of the cache of URLs (default the user's)"
}

// Flags registers --cache-dir and --cache-size.
func (c *Cache) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Dir, "cache-dir", "",
		"`FOLDER` of the cache of URLs and raw samples (default the user's)")
	f.StringVar(&c.size, "cache-size", "",
		"most `BYTES` of the cache, such as 500GiB (default 90 % of the free space)")
}

// Settle parses the values of the flags and returns their problems. A cache is of use only for a
// URL or for raw samples, so a cache flag without any such argument is a problem: the user expects
// an effect. A missing path passes, because it may be meant as either; opening it reports the
// error.
func (c *Cache) Settle(args []string) (problems []string) {
	cached := func(arg string) bool { return remote.IsURL(arg) || !c.urls && raw.Loads(arg) || isMissing(arg) }
	if (c.Dir != "" || c.size != "") && len(args) > 0 && !slices.ContainsFunc(args, cached) {
		problems = append(problems,
			fmt.Sprintf("--cache-dir and --cache-size are for the URL of a dataset: nothing of %s is fetched; leave them out", args[0]))
	}
	if c.size == "" {
		return problems
	}
	n, err := units.ParseBytes(c.size)
	if err != nil || n <= 0 {
		return append(problems, fmt.Sprintf("--cache-size: %q is not a size; write it like 500GiB", c.size))
	}
	c.Size = n
	return problems
}

// isMissing reports whether nothing has the path, apart from its generation.
func isMissing(path string) bool {
	folder, _, _ := layout.SplitGeneration(path)
	_, err := os.Lstat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

// Map opens the dataset at a path on this machine. If the path does not exist, the error suggests
// the existing path that was probably meant.
func Map(path string, options ...mmapds.Option) (*mmapds.Dataset, error) {
	ds, err := mmapds.Open(path, options...)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Lstat(path); missing != nil {
			return nil, fmt.Errorf("%w%s", err, suggest.Path(path))
		}
	}
	return ds, err
}

// Options says which part of a DATASET is opened, and how.
type Options struct {
	Fields  []string      // nil means all
	Split   string        // "" means all
	Shares  string        // of raw samples: divides them into splits by their names, see raw.Options
	Prepare rawcache.Mode // of raw samples: whether they are kept in the cache as a dataset
	Verify  mmapds.Option // for local datasets, and datasets in the cache of raw samples; nil verifies nothing

	Tolerant bool // of raw samples: the loader goes on after records that cannot be read

	// Head has the meaning of rawcache.Options.Head. Chosen is called with the choice of what
	// the cache stores for raw samples. Both are for raw samples only and may be nil.
	Head   func(field string) (*transforms.Pipeline, error)
	Chosen func(c *rawcache.Choice)
}

// Any opens the DATASET argument of a command: a path or URL of a dataset, or a view of several. It fetches no records.
func (c *Cache) Any(ctx context.Context, path string, o Options) (*views.Dataset, error) {
	return c.View(ctx, &views.Node{Dataset: path, Fields: o.Fields, Split: o.Split}, o)
}

// View opens a view. Each DATASET in the view is opened as Any opens it.
func (c *Cache) View(ctx context.Context, n *views.Node, o Options) (*views.Dataset, error) {
	return n.Open(ctx, views.Options{Open: func(ctx context.Context, path string, fields []string, split string) (
		views.Part, error) {
		if remote.IsURL(path) {
			return c.openURL(ctx, path, fields, split, o)
		}
		if o.Shares != "" && !raw.Loads(path, fields...) {
			return nil, madeSplits(path)
		}
		if raw.Is(path, fields...) {
			return c.openRaw(ctx, path, fields, split, o)
		}
		options := []mmapds.Option{mmapds.WithFields(fields...), mmapds.WithSplit(split)}
		if o.Verify != nil {
			options = append(options, o.Verify)
		}
		ds, err := Map(path, options...)
		if raw.Instead(path, err) {
			return c.openRaw(ctx, path, fields, split, o)
		}
		if err != nil {
			return nil, err
		}
		return ds, nil
	}})
}

// MayBeRaw reports whether a URL that could not be opened as a dataset may hold raw samples
// instead: the server answered, and there is no dataset at the URL. A refused, unreachable or
// corrupt dataset does not count: looking for raw samples there would hide the true reason.
func MayBeRaw(err error) bool {
	if err == nil {
		return false
	}
	for _, other := range []error{remote.ErrPermission, remote.ErrNoBucket, remote.ErrUnavailable, context.Canceled,
		context.DeadlineExceeded, store.ErrCorrupt, errors.ErrUnsupported, mirror.ErrGeneration} {
		if errors.Is(err, other) {
			return false
		}
	}
	var request *remote.Error
	return !errors.As(err, &request) || request.Kind != nil
}

// madeSplits is the error for split shares that are given for a dataset. Its splits were decided
// when the dataset was made.
func madeSplits(path string) error {
	return fmt.Errorf("%s: splits: the splits of a dataset are made with it; name one of them as split",
		remote.Redact(path))
}

// openURL opens the dataset of a URL or, if the URL has no dataset, its raw samples. The search
// for raw samples starts at once and runs beside the opening of the dataset: each takes several
// round trips, and running them one after the other would double the wait.
func (c *Cache) openURL(ctx context.Context, url string, fields []string, split string, o Options) (
	views.Part, error) {
	samples := c.lookForSamples(ctx, url, fields, split, o)
	ds, err := c.Open(ctx, url, fields, split)
	if MayBeRaw(err) {
		part, ofRaw := samples.keep(ctx)
		if ofRaw != nil {
			return nil, fmt.Errorf("%w (and as raw samples: %w)", err, ofRaw)
		}
		return part, nil
	}
	samples.leave()
	switch {
	case err != nil:
		return nil, err
	case o.Shares != "":
		return nil, errors.Join(madeSplits(url), ds.Close())
	case o.Verify != nil:
		err := fmt.Errorf("%s: verify: records of a URL are compared with their checksums when they are fetched; "+
			"leave verify out", remote.Redact(url))
		return nil, errors.Join(err, ds.Close())
	}
	return ds, nil
}

// openRaw opens raw samples at a path. For a folder, the error also says that it is not a dataset,
// as the user may have meant one.
func (c *Cache) openRaw(ctx context.Context, path string, fields []string, split string, o Options) (
	views.Part, error) {
	part, err := c.lookForSamples(ctx, path, fields, split, o).keep(ctx)
	if err == nil {
		return part, nil
	}
	if info, missing := os.Stat(path); missing == nil && info.IsDir() {
		err = fmt.Errorf("%w (and it is not a dataset: there is no %s in it)", err, layout.ManifestName)
	}
	return nil, err
}

// Open opens the dataset of a URL over the mirror in the cache. It fetches no records. The caller
// closes the dataset.
func (c *Cache) Open(ctx context.Context, url string, fields []string, split string) (*mirror.Dataset, error) {
	open := c.bucket
	if open == nil {
		open = cloud.Open
	}
	b, u, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	return mirror.Open(ctx, b, u.Key, mirror.Options{Policy: remote.Policy{Retry: c.progress().Warn}, CacheDir: c.Dir,
		CacheBytes: c.Size, Fields: fields, Split: split})
}

// Local replaces each argument that is the URL of a dataset by the path of a complete copy in the
// cache, which stays there until Close. MayBeRaw tells whether an error means that the URL has no
// dataset. Before Local fetches a copy, it calls note with a line that names the copy's path.
func (c *Cache) Local(ctx context.Context, args []string, note func(text string)) error {
	for i, a := range args {
		if !remote.IsURL(a) {
			continue
		}
		d, err := c.Open(ctx, a, nil, "")
		if err != nil {
			return err
		}
		c.local = append(c.local, d)
		note(fmt.Sprintf("%s is fetched to %s", d.Name(), d.Path()))
		if err := d.Fill(ctx); err != nil {
			return err
		}
		args[i] = d.Path()
	}
	return nil
}

// Close closes the copies of Local, which the cache may evict from then on.
func (c *Cache) Close() {
	for _, d := range c.local {
		_ = d.Close() // what was read is not affected by an error
	}
	c.local = nil
}
