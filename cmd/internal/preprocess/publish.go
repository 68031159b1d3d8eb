package preprocess

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
)

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
	if !inBucket(text) {
		return nil, nil
	}
	c, u, err := b.client(text)
	if err != nil {
		return nil, err
	}
	if u.Key == "" {
		return nil, fmt.Errorf("%s: %w", u, errNoKey)
	}
	root, err := openSpool(spool, u)
	if err != nil {
		return nil, err
	}
	d := &destination{ctx: b.ctx, client: c, url: u, text: text, spool: root.Name()}
	b.open = append(b.open, func() { closeSpool(root) })
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

// present reports whether there is a dataset that is to be replaced; another one is an error, and
// so is a bucket that is not there, which else would come out when the first shard is sent.
func (d *destination) present(overwrite bool, format string) (bool, error) {
	_, err := d.client.Stat(d.ctx, d.manifestKey(format))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, d.bucketThere()
	case err != nil:
		return false, err
	case overwrite:
		return true, nil
	}
	return true, fmt.Errorf("%s %w already; choose another name, or use --overwrite", d.url, store.ErrExist)
}

// bucketThere checks that the bucket exists. A user who may not list it may still write there.
func (d *destination) bucketThere() error {
	for _, err := range d.client.List(d.ctx, d.url.Key+"/", "/") {
		if errors.Is(err, remote.ErrNoBucket) {
			return err
		}
		break
	}
	return nil
}

// remove removes an object, if it is there.
func (d *destination) remove(key string) error {
	if err := d.client.Delete(d.ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// outbox returns what sends the dataset while it is built; nil where that cannot be: a file
// has no shards, and a dataset that is to be replaced stays until all of the new one is made.
func (d *destination) outbox(format string, replaces bool) *outbox {
	if replaces || format != formatFlat {
		return nil
	}
	return &outbox{to: d, folder: d.local, key: d.url.Key}
}

// partOutbox returns what sends a part of the dataset.
func (d *destination) partOutbox(w World) *outbox {
	name := partName(w.Rank, w.Size)
	key := d.sibling(".parts").url.Key + "/" + name
	return &outbox{to: d, folder: filepath.Join(partsDir(d.local), name), key: key, seal: partFile(key)}
}

// send sends what was made and is not in the bucket yet, and removes it here.
func (d *destination) send(s *Summary, overwrite bool, progress Progress) error {
	var err error
	if s.Part != nil {
		s.Part.Dest = d.url.String()
		err = d.sendPart(s, progress)
	} else {
		err = d.sendDataset(s, overwrite, progress)
	}
	if errors.Is(err, errLost) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; what was made is kept in %s, and --resume sends the rest", err, d.spool)
	}
	return d.removeSpool()
}

// removeSpool removes what was built here.
func (d *destination) removeSpool() error { return private.RemoveOwn(d.spool) }

// closeSpool closes a spool, and removes it and the user's folder if they are empty.
func closeSpool(spool *os.Root) {
	path := spool.Name()
	_ = spool.Close()
	removeEmpty([]string{path, filepath.Dir(path)})
}

// sendPart sends the dataset of a part, then the file that makes it one. A part that was
// there already is left alone.
func (d *destination) sendPart(s *Summary, progress Progress) error {
	name := partName(s.Part.Rank, s.Part.WorldSize)
	parts := d.sibling(".parts")
	path, key := filepath.Join(partsDir(d.local), name), parts.url.Key+"/"+name
	s.Dest = parts.url.Join(name).String()
	if _, err := os.Stat(partFile(path)); err != nil {
		return nil
	}
	if err := d.remove(partFile(key)); err != nil {
		return err
	}
	if s.Records > 0 {
		if err := d.sendShards(path, key, progress); err != nil {
			return err
		}
		if err := d.sendFile(filepath.Join(path, store.ManifestName), key+"/"+store.ManifestName, remote.WriteOptions{}); err != nil {
			return err
		}
	}
	return d.sendFile(partFile(path), partFile(key), remote.WriteOptions{})
}

// sendDataset sends the files of a dataset, its manifest last.
func (d *destination) sendDataset(s *Summary, overwrite bool, progress Progress) error {
	s.Dest = d.url.String()
	last, key := d.local, d.url.Key
	if s.Format == formatFlat {
		last, key = filepath.Join(d.local, store.ManifestName), d.manifestKey(formatFlat)
		if overwrite {
			if err := d.remove(key); err != nil {
				return err
			}
		}
		if err := d.sendShards(d.local, d.url.Key, progress); err != nil {
			return err
		}
	}
	list := filepath.Clean(d.local) + ".skipped.jsonl"
	if _, err := os.Stat(list); err == nil {
		if err := d.sendFile(list, d.url.Key+".skipped.jsonl", remote.WriteOptions{}); err != nil {
			return err
		}
	}
	progress.Begin("publishing", -1, "files")
	defer progress.End()
	return d.sendLast(last, key, !overwrite)
}

// sendLast sends the file that makes a dataset of the others. That it is there already is no
// error where it has the same bytes: the answer to a request that was repeated, or to another
// process that made the same, says so.
func (d *destination) sendLast(path, key string, ifNotExist bool) error {
	err := d.sendFile(path, key, remote.WriteOptions{IfNotExist: ifNotExist})
	if !errors.Is(err, remote.ErrExists) {
		return err
	}
	o, statErr := d.client.Stat(d.ctx, key)
	crc, ownErr := crcOf(path)
	if statErr != nil || ownErr != nil || sameObject(d.ctx, d.client, o, crc) != nil {
		return err
	}
	return nil
}

// sendFile sends one file.
func (d *destination) sendFile(path, key string, opts remote.WriteOptions) error {
	_, err := sendFile(d.ctx, d.client, path, key, opts)
	return err
}

// sendShards sends the files of a flat dataset that are not in the bucket yet, all but the
// manifest. Then they are all there, and none that a run before this one has left.
func (d *destination) sendShards(folder, key string, progress Progress) error {
	m, err := readManifest(folder)
	if err != nil {
		return err
	}
	left, total := d.unsent(m, folder, key)
	if err := d.sendAll(left, total, progress); err != nil {
		return err
	}
	return d.arrived(m, key, progress)
}

// readManifest reads the manifest of a dataset some of whose files are stubs.
func readManifest(folder string) (*store.Manifest, error) {
	text, err := os.ReadFile(filepath.Join(folder, store.ManifestName))
	if err != nil {
		return nil, err
	}
	return store.DecodeManifest(text)
}

// unsent returns the files that are not in the bucket under their key, and their bytes.
func (d *destination) unsent(m *store.Manifest, folder, key string) (list []parcel, total int64) {
	for _, s := range m.Shards {
		for _, f := range s.Files {
			p := parcel{path: filepath.Join(folder, f.Name), key: key + "/" + f.Name, size: f.Bytes, crc: f.CRC32C}
			if was, ok := readStub(p.path); ok && was.Key == p.key && was.CRC32C == p.crc {
				continue
			}
			p.keep = p.size < leastStub
			list = append(list, p)
			total += p.size
		}
	}
	return list, total
}

// sendAll sends files, several at a time.
func (d *destination) sendAll(list []parcel, total int64, progress Progress) error {
	progress.Begin("sending", total>>10, "KiB")
	defer progress.End()
	sum := int64(0)
	sent := func(n int64) {
		before := sum >> 10
		sum += n
		progress.Add(sum>>10 - before)
	}
	large := func(p parcel) bool { return p.size >= leastStub }
	err := d.sendSome(uploads, list, large, sent)
	if err == nil {
		err = d.sendSome(smallUploads, list, func(p parcel) bool { return !large(p) }, sent)
	}
	return err
}

// sendSome sends those of a list that are wanted.
func (d *destination) sendSome(workers int, list []parcel, wanted func(parcel) bool, sent func(int64)) error {
	s := newSender(d.ctx, d.client, workers, sent)
	defer s.close()
	for _, p := range list {
		if wanted(p) {
			s.put(p)
		}
	}
	return s.settle(0)
}

// arrived makes sure that all shards of a dataset are in the bucket, and removes what else a
// run before this one has left of such.
func (d *destination) arrived(m *store.Manifest, key string, progress Progress) error {
	missing := make(map[string]int64)
	for _, s := range m.Shards {
		for _, f := range s.Files {
			missing[f.Name] = f.Bytes
		}
	}
	var strays []string
	for o, err := range d.client.List(d.ctx, key+"/", "") {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(o.Key, key+"/")
		if size, ok := missing[name]; ok && size == o.Size {
			delete(missing, name)
		} else if !ok && strings.HasSuffix(name, ".npy") && !strings.Contains(name, "/") {
			strays = append(strays, o.Key)
		}
	}
	for name := range missing {
		return lost(d.client.Name(key + "/" + name))
	}
	if len(strays) > 0 {
		progress.Note(fmt.Sprintf("%s of a run before this one are removed from %s\n", cli.Counted(int64(len(strays)), "object"), d.client.Name(key)))
	}
	for _, stray := range strays {
		if err := d.remove(stray); err != nil {
			return err
		}
	}
	return nil
}
