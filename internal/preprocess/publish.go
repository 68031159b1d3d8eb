package preprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

// uploads is how many files are sent at a time, each in parts.
const uploads = 4

// destination is a dataset in a bucket, and where it is built.
type destination struct {
	ctx    context.Context
	client *remote.Client
	url    *remote.URL
	text   string // as it was given: with the options, and perhaps secrets
	spool  string // folder of our own
	local  string // the dataset inside of it
}

// dest returns what a URL names, nil for a place on this machine.
func (b *buckets) dest(text, spool string) (*destination, error) {
	if !remote.IsURL(text) || strings.HasPrefix(text, "file:") {
		return nil, nil
	}
	c, u, err := b.client(text)
	if err != nil {
		return nil, err
	}
	if u.Key == "" {
		return nil, fmt.Errorf("%s: %w", u, errNoKey)
	}
	d := &destination{ctx: b.ctx, client: c, url: u, text: text, spool: spoolDir(spool, u)}
	d.local = filepath.Join(d.spool, u.Base())
	b.names = append(b.names, d.local, u.String())
	return d, nil
}

// sibling returns the place with another ending of its name.
func (d *destination) sibling(ending string) *destination {
	s := *d
	url := *d.url
	url.Key += ending
	s.url = &url
	path, query, ok := strings.Cut(d.text, "?")
	if s.text = strings.TrimSuffix(path, "/") + ending; ok {
		s.text += "?" + query
	}
	return &s
}

// manifestKey is the object that makes a dataset of the others.
func (d *destination) manifestKey(format string) string {
	if format == formatHDF5 {
		return d.url.Key
	}
	return d.url.Key + "/" + store.ManifestName
}

// absent makes sure that there is no dataset, unless it is to be replaced.
func (d *destination) absent(overwrite bool, format string) error {
	_, err := d.client.Stat(d.ctx, d.manifestKey(format))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case overwrite:
		return nil
	}
	return fmt.Errorf("%s %w already; choose another name, or use --overwrite", d.url, store.ErrExist)
}

// send sends what was made, and removes it here.
func (d *destination) send(s *Summary, overwrite bool, progress Progress) error {
	var err error
	if s.Part != nil {
		s.Part.Dest = d.url.String()
		err = d.sendPart(s, progress)
	} else {
		err = d.sendDataset(s, overwrite, progress)
	}
	if err != nil {
		return fmt.Errorf("%w; what was made is kept in %s, and --resume sends it", err, d.spool)
	}
	return os.RemoveAll(d.spool)
}

// sendPart sends the dataset of a part, then the file that makes it one. A part that was
// there already is left alone.
func (d *destination) sendPart(s *Summary, progress Progress) error {
	name := partName(s.Part.Rank, s.Part.WorldSize)
	parts := d.sibling(".parts")
	path := filepath.Join(partsDir(d.local), name)
	s.Dest = parts.url.Join(name).String()
	if _, err := os.Stat(partFile(path)); err != nil {
		return nil
	}
	files, err := regularFiles(path)
	if err != nil {
		return err
	}
	key := parts.url.Key + "/" + name
	if err := d.client.Delete(d.ctx, key+".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.sendAll(path, key, files, progress); err != nil {
		return err
	}
	return d.sendFile(partFile(path), key+".json", false, func(int64) {})
}

// sendDataset sends the files of a dataset, its manifest last.
func (d *destination) sendDataset(s *Summary, overwrite bool, progress Progress) error {
	s.Dest = d.url.String()
	last, key := d.local, d.url.Key
	if s.Format == formatFlat {
		last, key = filepath.Join(d.local, store.ManifestName), d.manifestKey(formatFlat)
		if err := d.sendShards(overwrite, progress); err != nil {
			return err
		}
	}
	list := filepath.Clean(d.local) + ".skipped.jsonl"
	if _, err := os.Stat(list); err == nil {
		if err := d.sendFile(list, d.url.Key+".skipped.jsonl", false, func(int64) {}); err != nil {
			return err
		}
	}
	progress.Begin("publishing", -1, "files")
	defer progress.End()
	return d.sendFile(last, key, !overwrite, func(int64) {})
}

// sendShards sends all files of a flat dataset but its manifest, and removes objects that a
// run before this one has left, or the dataset that is replaced.
func (d *destination) sendShards(overwrite bool, progress Progress) error {
	files, err := regularFiles(d.local)
	if err != nil {
		return err
	}
	if overwrite {
		if err := d.client.Delete(d.ctx, d.manifestKey(formatFlat)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := d.tidy(files, progress); err != nil {
		return err
	}
	delete(files, store.ManifestName)
	return d.sendAll(d.local, d.url.Key, files, progress)
}

// tidy removes objects of a dataset without a manifest that are not among files; the others
// are replaced.
func (d *destination) tidy(files map[string]int64, progress Progress) error {
	found, removed := 0, 0
	for o, err := range d.client.List(d.ctx, d.url.Key+"/", "") {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(o.Key, d.url.Key+"/")
		if !strings.HasSuffix(name, ".npy") || strings.Contains(name, "/") {
			continue
		}
		found++
		if _, ok := files[name]; ok {
			continue
		}
		removed++
		if err := d.client.Delete(d.ctx, o.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if found > 0 {
		progress.Note(fmt.Sprintf("%s has %d objects of a run before this one: %d are removed, the others replaced\n", d.url, found, removed))
	}
	return nil
}

// regularFiles returns the sizes of the files in a folder, by name; none if it is not there.
func regularFiles(folder string) (map[string]int64, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	files := make(map[string]int64)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			files[e.Name()] = info.Size()
		}
	}
	return files, nil
}

// sendAll sends files of a folder, several at a time.
func (d *destination) sendAll(folder, key string, files map[string]int64, progress Progress) error {
	total := int64(0)
	for _, size := range files {
		total += size >> 10
	}
	progress.Begin("sending", total, "KiB")
	defer progress.End()
	todo := make(chan string)
	errs := make(chan error, uploads)
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	var wg sync.WaitGroup
	var told sync.Mutex
	sent := func(n int64) {
		told.Lock()
		defer told.Unlock()
		progress.Add(n >> 10)
	}
	for range uploads {
		wg.Go(func() {
			for name := range todo {
				if err := d.sendFile(filepath.Join(folder, name), key+"/"+name, false, sent); err != nil {
					errs <- err
					cancel()
					return
				}
			}
		})
	}
	for name := range files {
		select {
		case todo <- name:
		case <-ctx.Done():
		}
	}
	close(todo)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return context.Cause(ctx)
	}
}

// sendFile sends one file, a second and a third time where that may help.
func (d *destination) sendFile(path, key string, ifNotExist bool, sent func(int64)) (err error) {
	for range 3 {
		if err = d.sendOnce(path, key, ifNotExist, sent); err == nil || remote.Permanent(err) || d.ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (d *destination) sendOnce(path, key string, ifNotExist bool, sent func(int64)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := d.client.NewWriter(d.ctx, key, remote.WriteOptions{IfNotExist: ifNotExist})
	if err != nil {
		return err
	}
	defer w.Close()
	n, err := io.Copy(w, f)
	if err != nil {
		return err
	}
	if err := w.Commit(); err != nil {
		return err
	}
	sent(n)
	return nil
}
