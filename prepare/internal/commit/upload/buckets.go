package upload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/vfs/bucketfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
)

// Destination returns the place in a bucket that a URL names, and nil for a place on this machine. With a rank,
// Destination waits until no other process of this machine makes the part: both would build in the same local folder.
func (b *Buckets) Destination(text, spool string, rank part.Rank) (*Destination, error) {
	if !InBucket(text) {
		return nil, nil
	}
	c, u, err := b.Client(text)
	if err != nil {
		return nil, err
	}
	if u.Key == "" {
		return nil, fmt.Errorf("%s: %w", u, errNoKey)
	}
	name := u.Name() + "/" + u.Key
	if rank.Size > 0 {
		turn, err := b.takeTurn(spool, name, rank)
		if err != nil {
			return nil, err
		}
		name += "\x00" + part.Name(rank.Index, rank.Size) + turn.ID()
	}
	root, err := openSpool(spool, name)
	if err != nil {
		return nil, err
	}
	d := &Destination{Context: b.Context, Client: c, URL: u, Text: text, spool: root.Name()}
	b.open = append(b.open, func() { closeSpool(root) })
	d.Local = filepath.Join(d.spool, u.Base())
	b.names = append(b.names, d.Local, u.String())
	return d, nil
}

// takeTurn waits for the turn of a rank. The turn lasts until the buckets are closed, as the local folder is in use
// until all its files are sent.
func (b *Buckets) takeTurn(spool, name string, rank part.Rank) (*part.Turn, error) {
	h := sha256.Sum256([]byte(name))
	lock := hex.EncodeToString(h[:8]) + "-" + part.Name(rank.Index, rank.Size)
	var turn *part.Turn
	var folder string
	err := fs.ErrNotExist
	for n := 0; n < 100 && errors.Is(err, fs.ErrNotExist); n++ { // another process may remove the folder, which was empty
		var own *os.Root
		if own, err = openUserFolder(spool); err != nil {
			continue
		}
		folder = own.Name()
		turn, err = part.Take(b.Context, folder, lock, func() {
			b.Warn(fmt.Sprintf("another process makes part %d of %d; waiting for it", rank.Index, rank.Size))
		})
		_ = own.Close()
	}
	if err != nil {
		return nil, err
	}
	b.open = append(b.open, func() {
		turn.End()
		_ = os.Remove(folder) // if it is empty
	})
	return turn, nil
}

// Buckets are the buckets of one run.
type Buckets struct {
	Context context.Context
	Warn    func(text string) // told of requests that are repeated

	Open func(ctx context.Context, url string) (remote.Bucket, *remote.URL, error) // nil means OpenURL

	open  []func()
	roots map[string]mounted // by the name of the bucket
	names []string           // pairs: what places are called here, and for people
}

func (b *Buckets) Close() {
	for _, f := range slices.Backward(b.open) {
		f()
	}
}

// mounted is a bucket in the tree of virtual files, with the path that it has there.
type mounted struct {
	path string
	fsys *bucketfs.FS
}

// Client opens the bucket of a URL.
func (b *Buckets) Client(text string) (*requests.Client, *remote.URL, error) {
	open := b.Open
	if open == nil {
		open = OpenURL
	}
	bucket, u, err := open(b.Context, text)
	if err != nil {
		return nil, nil, err
	}
	c := requests.NewClient(bucket, remote.Policy{Retry: b.Warn})
	b.open = append(b.open, func() { _ = c.Close() })
	return c, u, nil
}

// Mount returns a path under which a URL can be opened like a file. For a text that names something on this machine it
// is the local path.
func (b *Buckets) Mount(text string) (string, error) {
	path, _, _, err := b.MountFS(text)
	return path, err
}

// MountFS is Mount that also returns the bucket's file system and the key in it; nil and "" for a local path.
func (b *Buckets) MountFS(text string) (path string, fsys *bucketfs.FS, key string, err error) {
	if !InBucket(text) {
		return LocalPath(text), nil, "", nil
	}
	c, u, err := b.Client(text)
	if err != nil {
		return "", nil, "", err
	}
	m, ok := b.roots[u.Name()]
	if !ok {
		m = b.mountBucket(c, u)
	}
	return filepath.Join(m.path, filepath.FromSlash(u.Key)), m.fsys, u.Key, nil
}

// Naming are the ends of names of files that name images next to them.
var Naming = []string{".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".yaml", ".yml"}

// MountSource is MountFS for a source that does not change meanwhile: the folder that it is, or that a file of an
// ending of naming is in, is listed at once, so that a look at each of its folders is not a request each. Patterns,
// arrays, datasets and more than [bucketfs.MostListed] objects are not. It returns false for a server that lists
// nothing, such as a web server.
func (b *Buckets) MountSource(text string, naming []string) (path string, fsys *bucketfs.FS, lists bool, err error) {
	if !InBucket(text) {
		return LocalPath(text), nil, false, nil
	}
	c, u, err := b.Client(text)
	if err != nil {
		return "", nil, false, err
	}
	m := b.mount(c, u)
	path = filepath.Join(m.path, filepath.FromSlash(u.Key))
	switch err = listSource(m.fsys, u.Key, naming); {
	case errors.Is(err, bucketfs.ErrTooMany), errors.Is(err, bucketfs.ErrOther):
		return path, m.fsys, true, nil
	case errors.Is(err, fs.ErrNotExist):
		return path, m.fsys, false, nil
	}
	return path, m.fsys, err == nil, b.Explain(err)
}

// listSource lists the folder that has the files of a source. One listing has up to a thousand names, where a look at
// each file would be a request each.
func listSource(fsys *bucketfs.FS, key string, naming []string) error {
	key = cmp.Or(key, ".")
	switch {
	case strings.ContainsAny(key, "*?[{"):
		return bucketfs.ErrOther
	case slices.Contains(naming, strings.ToLower(pathpkg.Ext(key))):
		return fsys.List(pathpkg.Dir(key), nil)
	}
	return fsys.List(key, source.IsImageName, layout.ManifestName)
}

// MountAll is Mount for several places.
func (b *Buckets) MountAll(texts []string) (paths []string, err error) {
	paths = make([]string, len(texts))
	for i, text := range texts {
		if paths[i], err = b.Mount(text); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// mountBucket mounts a bucket that is not mounted yet, for all that is read and written there.
func (b *Buckets) mountBucket(c *requests.Client, u *remote.URL) mounted {
	m := b.mount(c, u)
	if b.roots == nil {
		b.roots = make(map[string]mounted)
	}
	b.roots[u.Name()] = m
	return m
}

// mount mounts a bucket. Its path has the name of the bucket, with a number if a bucket is mounted under that name
// already: two servers may have buckets of the same name, and a source has a mount of its own.
func (b *Buckets) mount(c *requests.Client, u *remote.URL) mounted {
	root := u.Scheme + ":/" + u.Bucket
	for n := 2; vfs.Mounted(root); n++ {
		root = fmt.Sprintf("%s:/%s~%d", u.Scheme, u.Bucket, n)
	}
	m := mounted{root, bucketfs.New(b.Context, c, "")}
	b.open = append(b.open, vfs.Mount(root, m.fsys))
	b.names = append([]string{root, u.Scheme + "://" + u.Bucket}, b.names...)
	return m
}

// Text replaces the paths of mounted buckets in a text by the URLs that the user gave.
func (b *Buckets) Text(text string) string { return strings.NewReplacer(b.names...).Replace(text) }

// Explain returns err with the URLs that the user gave in place of the paths of mounted buckets.
func (b *Buckets) Explain(err error) error {
	if err == nil || len(b.names) == 0 {
		return err
	}
	return &renamed{err, b.Text(err.Error())}
}

// InBucket reports whether a place is in a bucket, and not on this machine.
func InBucket(text string) bool { return remote.IsURL(text) && !strings.HasPrefix(text, "file:") }

// LocalPath returns the path of a file URL; it returns other strings, which are paths, unchanged.
func LocalPath(text string) string {
	if strings.HasPrefix(text, "file://") {
		if u, err := remote.ParseURL(text); err == nil {
			return filepath.Join(filepath.FromSlash(u.Bucket), filepath.FromSlash(u.Key))
		}
	}
	return text
}

// renamed is an error with other names in its text.
type renamed struct {
	error
	text string
}

func (e *renamed) Error() string { return e.text }

func (e *renamed) Unwrap() error { return e.error }

// ApartURLs refuses texts that look like URLs but are not, and a destination inside of a source or the other way
// round: the build would then read what it writes, or replace what it reads.
func ApartURLs(source, dest string) error {
	var parsed []*remote.URL
	for _, text := range []string{source, dest} {
		if !remote.IsURL(text) {
			continue
		}
		u, err := remote.ParseURL(text)
		if err != nil {
			return err
		}
		parsed = append(parsed, u)
	}
	if len(parsed) < 2 {
		return nil
	}
	s, d := parsed[0], parsed[1]
	if s.Name() != d.Name() || s.Scheme == "file" {
		return nil
	}
	a, b := "/"+s.Key+"/", "/"+d.Key+"/"
	if s.Key == "" || d.Key == "" || strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return fmt.Errorf("source %s and destination %s are in one another; choose another destination", s, d)
	}
	return nil
}

// openSpool makes and opens the local folder where a dataset for a bucket is built. Each run for that name has the same
// folder, so that a run that was stopped can be resumed. It is inside of a folder of this user: anybody can compute its
// name, and in a shared temporary folder another user could make it first.
func openSpool(folder, name string) (*os.Root, error) {
	h := sha256.Sum256([]byte(name))
	for range 100 { // see closeSpool, which another process may be in
		own, err := openUserFolder(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		spool, err := private.Make(own, hex.EncodeToString(h[:8]))
		_ = own.Close()
		if !errors.Is(err, fs.ErrNotExist) {
			return spool, err
		}
	}
	return nil, fmt.Errorf("the spool: %s is removed again and again", folder)
}

func openUserFolder(folder string) (*os.Root, error) {
	if folder == "" {
		folder = os.TempDir()
	}
	own, err := private.UserFolder(folder)
	if err != nil {
		err = fmt.Errorf("the spool: %w", err)
	}
	return own, err
}

// errNoKey is the error of a destination that is a whole bucket.
var errNoKey = errors.New("a dataset needs a name inside of its bucket")

// OpenURL opens buckets; tests replace it.
var OpenURL = cloud.Open
