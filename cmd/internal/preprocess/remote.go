package preprocess

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/cmd/internal/bucketfs"
	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/remote/cloud"
)

// readAhead is how many samples of a bucket are being read at a time: at 50 ms a request, and
// 100 KB an image, 64 of them are 128 MB/s.
const readAhead = 64

// openURL opens buckets; tests have others.
var openURL = cloud.Open

// runRemote is Run where source, destination or both are URLs. A source is read where it is.
// A dataset is built on disk, see Config.Spool, and sent: of a flat one each shard when it is
// finished, see outbox. Its manifest is the last object.
func runRemote(ctx context.Context, c Config, progress Progress) (*Summary, error) {
	b := &buckets{ctx: ctx, warn: progress.Warn}
	defer b.close()
	s, err := b.run(c, progress)
	return s, b.explain(err)
}

func (b *buckets) run(c Config, progress Progress) (*Summary, error) {
	if err := apartURLs(c.Source, c.Dest); err != nil {
		return nil, err
	}
	local := c
	var err error
	if local.Source, err = b.mount(c.Source); err != nil {
		return nil, err
	}
	d, err := b.dest(c.Dest, c.Spool)
	if err != nil {
		return nil, err
	}
	if d == nil {
		local.Dest = localPath(c.Dest)
		s, err := Run(b.ctx, local, progress)
		return b.named(s, c.Source), err
	}
	if c.Append {
		return nil, fmt.Errorf("--append: %s is in a bucket, whose datasets cannot be added to; make a new one", d.url)
	}
	local.Dest, local.Overwrite = d.local, !c.Resume || c.Overwrite
	replaces, err := d.present(c.Overwrite, local.format())
	if err != nil {
		s, err := b.complete(local, d, err, local.ofMade)
		return b.named(s, c.Source), err
	}
	local.outbox = d.outbox(local.format(), replaces)
	if c.World.Size > 0 {
		local.Overwrite, local.outbox = c.Overwrite, d.partOutbox(c.World)
		if local.partsAt, err = b.mount(d.sibling(".parts").text); err != nil {
			return nil, err
		}
	}
	s, err := Run(b.ctx, local, progress)
	if err != nil {
		return nil, local.outbox.explain(err)
	}
	return b.named(s, c.Source), d.send(s, c.Overwrite, progress)
}

// named gives a summary the names that the user knows.
func (b *buckets) named(s *Summary, source string) *Summary {
	if s != nil && remote.IsURL(source) {
		s.Source.Path = b.text(s.Source.Path)
	}
	return s
}

// mergeRemote is Merge where parts or destination are URLs.
func mergeRemote(ctx context.Context, m MergeConfig, progress Progress) (*Summary, error) {
	b := &buckets{ctx: ctx, warn: progress.Warn}
	defer b.close()
	s, err := b.merge(m, progress)
	return s, b.explain(err)
}

func (b *buckets) merge(m MergeConfig, progress Progress) (*Summary, error) {
	local, folders := m, m.Parts
	d, err := b.dest(m.Dest, m.Spool)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		folders = []string{partsDir(m.Dest)}
		if d != nil {
			folders = []string{d.sibling(".parts").text}
		}
	}
	local.RemoveParts = false
	if local.Parts, err = b.mountAll(folders); err != nil {
		return nil, err
	}
	if s, err := b.removeLeft(m, d, folders, local.Parts); s != nil || err != nil {
		return s, err
	}
	if d == nil {
		local.Dest = localPath(m.Dest)
	} else {
		format := Config{Dest: d.local}.format()
		replaces, err := d.present(m.Overwrite, format)
		if err != nil {
			return b.merged(m, local, d, folders, err)
		}
		local.Dest, local.Overwrite, local.outbox = d.local, !m.Resume || m.Overwrite, d.outbox(format, replaces)
	}
	s, err := Merge(b.ctx, local, progress)
	if err != nil {
		return nil, local.outbox.explain(err)
	}
	s.Source.Path = b.text(s.Source.Path)
	if m.RemoveParts {
		err = b.markSpent(folders, local.Parts, s, lastFile(local.Dest, s.Format))
	}
	if err == nil && d != nil {
		err = d.send(s, m.Overwrite, progress)
	}
	if err != nil {
		return nil, err
	}
	for i := range s.hints {
		s.hints[i] = b.text(s.hints[i])
	}
	if m.RemoveParts {
		err = b.removeAll(folders, s.ID)
	}
	return s, err
}

// buckets are the buckets of one run.
type buckets struct {
	ctx   context.Context
	warn  func(text string) // of requests that are repeated
	open  []func()
	roots map[string]string // where buckets are mounted, by name
	names []string          // pairs: what places are called here, and for people
}

func (b *buckets) close() {
	for _, f := range b.open {
		f()
	}
}

// client opens the bucket of a URL.
func (b *buckets) client(text string) (*remote.Client, *remote.URL, error) {
	bucket, u, err := openURL(b.ctx, text)
	if err != nil {
		return nil, nil, err
	}
	c := remote.NewClient(bucket, remote.Policy{Retry: b.warn})
	b.open = append(b.open, func() { _ = c.Close() })
	return c, u, nil
}

// mount returns a path for what a URL names; of what is on this machine it is the path itself.
func (b *buckets) mount(text string) (string, error) {
	if !inBucket(text) {
		return localPath(text), nil
	}
	c, u, err := b.client(text)
	if err != nil {
		return "", err
	}
	root, ok := b.roots[u.Name()]
	if !ok {
		root = b.mountBucket(c, u)
	}
	return filepath.Join(root, filepath.FromSlash(u.Key)), nil
}

func (b *buckets) mountAll(texts []string) (paths []string, err error) {
	paths = make([]string, len(texts))
	for i, text := range texts {
		if paths[i], err = b.mount(text); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// mountBucket mounts a bucket that is not mounted yet. Its path has its name, with a number
// where another one of that name is.
func (b *buckets) mountBucket(c *remote.Client, u *remote.URL) string {
	root := u.Scheme + ":/" + u.Bucket
	for n := 2; vfs.Mounted(root); n++ {
		root = fmt.Sprintf("%s:/%s~%d", u.Scheme, u.Bucket, n)
	}
	b.open = append(b.open, vfs.Mount(root, bucketfs.New(b.ctx, c, "")))
	b.names = append([]string{root, u.Scheme + "://" + u.Bucket}, b.names...)
	if b.roots == nil {
		b.roots = make(map[string]string)
	}
	b.roots[u.Name()] = root
	return root
}

// localPath returns the path that a file URL is; other texts are paths.
func localPath(text string) string {
	if strings.HasPrefix(text, "file://") {
		if u, err := remote.ParseURL(text); err == nil {
			return filepath.Join(filepath.FromSlash(u.Bucket), filepath.FromSlash(u.Key))
		}
	}
	return text
}

// text gives places the names that the user knows.
func (b *buckets) text(text string) string { return strings.NewReplacer(b.names...).Replace(text) }

// explain does the same with an error.
func (b *buckets) explain(err error) error {
	if err == nil || len(b.names) == 0 {
		return err
	}
	return &renamed{err, b.text(err.Error())}
}

// renamed is an error with other names in its text.
type renamed struct {
	error
	text string
}

func (e *renamed) Error() string { return e.text }
func (e *renamed) Unwrap() error { return e.error }

// removeAll removes folders of parts that dataset id was made of, and what says so.
func (b *buckets) removeAll(folders []string, id string) error {
	for _, f := range folders {
		if !inBucket(f) {
			if err := removeParts([]string{localPath(f)}, id); err != nil {
				return err
			}
			continue
		}
		c, u, err := b.client(f)
		if err != nil {
			return err
		}
		for o, err := range c.List(b.ctx, u.Key+"/", "") {
			if err == nil {
				err = c.Delete(b.ctx, o.Key)
			}
			if err != nil {
				return errRemove(err)
			}
		}
	}
	if err := b.unmark(folders); err != nil {
		return errRemove(err)
	}
	return nil
}

// inBucket reports whether a place is in a bucket, and not on this machine.
func inBucket(text string) bool { return remote.IsURL(text) && !strings.HasPrefix(text, "file:") }

// apartURLs refuses a destination inside a source, or the other way round.
func apartURLs(source, dest string) error {
	if !remote.IsURL(source) || !remote.IsURL(dest) {
		return nil
	}
	s, err := remote.ParseURL(source)
	if err != nil {
		return err
	}
	d, err := remote.ParseURL(dest)
	if err != nil || s.Name() != d.Name() || s.Scheme == "file" {
		return err
	}
	a, b := "/"+s.Key+"/", "/"+d.Key+"/"
	if s.Key == "" || d.Key == "" || strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return fmt.Errorf("source %s and destination %s lie in one another; choose another destination", s, d)
	}
	return nil
}

// openSpool makes and opens the folder where a dataset is built that goes to a URL: the same for each run of it, so
// that one that was stopped can be resumed. It is in a folder of this user, as anybody can compute its name.
func openSpool(folder string, u *remote.URL) (*os.Root, error) {
	if folder == "" {
		folder = os.TempDir()
	}
	h := sha256.Sum256([]byte(u.Name() + "/" + u.Key))
	for range 100 { // see closeSpool, which another process may be in
		own, err := private.UserFolder(folder)
		if err != nil {
			return nil, fmt.Errorf("the spool: %w", err)
		}
		spool, err := private.Make(own, hex.EncodeToString(h[:8]))
		_ = own.Close()
		if !errors.Is(err, fs.ErrNotExist) {
			return spool, err
		}
	}
	return nil, fmt.Errorf("the spool: %s is removed again and again", folder)
}

// errNoKey is the error of a destination that is a whole bucket.
var errNoKey = errors.New("a dataset needs a name inside of its bucket")
