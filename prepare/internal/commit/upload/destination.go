package upload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Destination is a dataset in a bucket, and the local folder where it is built.
type Destination struct {
	Context context.Context
	Client  *requests.Client
	URL     *remote.URL
	Text    string // as it was given: with the options, and perhaps secrets
	spool   string // temporary folder of this run
	Local   string // path of the dataset in spool, while it is built and sent
}

// Sibling returns the place with another ending of its name.
func (d *Destination) Sibling(ending string) *Destination {
	s := *d
	url := *d.URL
	url.Key += ending
	s.URL = &url
	path, query, ok := strings.Cut(d.Text, "?")
	if s.Text = strings.TrimSuffix(path, "/") + ending; ok {
		s.Text += "?" + query
	}
	return &s
}

// LastFile returns the file of a dataset that is written last: a folder without it is no dataset to readers.
func LastFile(dest, format string) string {
	return filepath.Join(dest, filepath.FromSlash(lastNames[format]))
}

// lastNames are the names of the files that are sent last, in the folder of a dataset, by format. An HDF5 file is a
// single object, and so its own last file.
var lastNames = map[string]string{part.Flat: layout.ManifestName, part.Zarr: layout.ZarrManifest}

// ManifestKey is the key of the object without which the other objects are no dataset.
func (d *Destination) ManifestKey(format string) string {
	return strings.TrimSuffix(d.URL.Key+"/"+lastNames[format], "/")
}

// Present reports whether a dataset that is to be replaced exists. A dataset that must not be replaced is an error. A
// missing bucket is an error, too: otherwise it would come out only when the first shard is sent, perhaps after hours.
func (d *Destination) Present(overwrite bool, format string) (bool, error) {
	_, err := d.Client.Stat(d.Context, d.ManifestKey(format))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := d.bucketThere(); err != nil || format != part.Zarr {
			return false, err
		}
		return false, d.noOtherZarr()
	case err != nil:
		return false, err
	case overwrite:
		return true, nil
	}
	return true, fmt.Errorf("%s %w already; choose another name, or use --overwrite", d.URL, store.ErrExist)
}

// noOtherZarr checks that no Zarr hierarchy written by another program exists under the key. Present looks only for the
// manifest, which such a hierarchy does not have, and its chunks would be replaced without a question. A hierarchy of
// penstock without a manifest is left over from a run that was killed, and may be replaced.
func (d *Destination) noOtherZarr() error {
	var root struct{ Attributes struct{ Format string } }
	text, _, err := d.Client.ReadAll(d.Context, d.URL.Key+"/"+layout.ZarrNode, part.MaxFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(text, &root) == nil &&
		root.Attributes.Format == layout.FormatName {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s has Zarr that penstock did not write; choose another name", d.URL)
	}
	return err
}

// bucketThere checks that the bucket exists. Only a missing bucket is an error: a user who may not list it may still
// write there.
func (d *Destination) bucketThere() error {
	for _, err := range d.Client.List(d.Context, d.URL.Key+"/", "/") {
		if errors.Is(err, remote.ErrNoBucket) {
			return err
		}
		break
	}
	return nil
}

// remove removes an object if it exists.
func (d *Destination) remove(key string) error {
	if err := d.Client.Delete(d.Context, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Uploader returns the Uploader that sends the dataset while it is built, and nil where the whole dataset must be built
// first. An HDF5 file has no shards that are finished early, and a dataset that is to be replaced stays until the whole
// new dataset is made.
func (d *Destination) Uploader(format string, replaces bool) *Uploader {
	if replaces || format != part.Flat {
		return nil
	}
	return &Uploader{to: d, folder: d.Local, key: d.URL.Key}
}

// PartURL is the URL of a rank's part.
func (d *Destination) PartURL(w part.Rank) string {
	return d.Sibling(".parts").URL.Join(part.Name(w.Index, w.Size)).String()
}

// PartUploader returns an Uploader for a part of the dataset. Unless overwrite is set, an existing part stays until
// its file is rewritten, as another machine may have built the same part.
func (d *Destination) PartUploader(w part.Rank, overwrite bool) *Uploader {
	key := d.Sibling(".parts").URL.Key + "/" + part.Name(w.Index, w.Size)
	o := &Uploader{to: d, key: key}
	if overwrite {
		o.seal = part.File(key)
	}
	return o
}

// progress receives the progress of sending.
type progress interface {
	Begin(what string, total int64, unit string)
	Add(n int64)
	End()
	Note(text string)
}

// Finish removes the local folder after all was sent. After an error it keeps the folder, as --resume needs it, and
// adds to the error what to do.
func (d *Destination) Finish(err error) error {
	if errors.Is(err, ErrLost) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; what was made is kept in %s, and --resume sends the rest", err, d.spool)
	}
	return d.RemoveSpool()
}

// RemoveSpool removes the local folder where the dataset was built.
func (d *Destination) RemoveSpool() error { return private.RemoveOwn(d.spool) }

// closeSpool closes a spool, and removes it and the user's folder if they are empty.
func closeSpool(spool *os.Root) {
	path := spool.Name()
	_ = spool.Close()
	if err := os.Remove(path); err == nil || errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(filepath.Dir(path))
	}
}

// SendPart sends the dataset of a part, and then the part's file, which makes it complete. To overwrite, the file in
// the bucket is removed first, so that a merge never pairs the old file with new shards. If there is no local file, the
// part was in the bucket already, and is left alone. Several machines may send the same part, as they write the same
// bytes.
func (d *Destination) SendPart(w part.Rank, records int64, overwrite bool, progress progress) error {
	name := part.Name(w.Index, w.Size)
	parts := d.Sibling(".parts")
	path, key := filepath.Join(part.Folder(d.Local), name), parts.URL.Key+"/"+name
	if _, err := os.Stat(part.File(path)); err != nil {
		return nil
	}
	if overwrite {
		if err := d.remove(part.File(key)); err != nil {
			return err
		}
	}
	if records > 0 {
		if err := d.sendShards(path, key, progress); err != nil {
			return err
		}
		if err := d.sendFile(filepath.Join(path, layout.ManifestName), key+"/"+layout.ManifestName,
			remote.WriteOptions{}); err != nil {
			return err
		}
	}
	return d.sendFile(part.File(path), part.File(key), remote.WriteOptions{})
}

// SendDataset sends the files of a dataset, its manifest last. To overwrite, the old manifest is removed first: a stop
// in between leaves no dataset, rather than an old manifest of new shards. An HDF5 file is one object, which the store
// replaces in one step.
func (d *Destination) SendDataset(format string, overwrite bool, progress progress) error {
	last, key := LastFile(d.Local, format), d.ManifestKey(format)
	if overwrite && format != part.HDF5 {
		if err := d.remove(key); err != nil {
			return err
		}
	}
	var err error
	switch format {
	case part.Flat:
		err = d.sendShards(d.Local, d.URL.Key, progress)
	case part.Zarr:
		err = d.sendZarr(overwrite, progress)
	}
	if err != nil {
		return err
	}
	list := filepath.Clean(d.Local) + ".skipped.jsonl"
	if _, err := os.Stat(list); err == nil {
		if err := d.sendFile(list, d.URL.Key+".skipped.jsonl", remote.WriteOptions{}); err != nil {
			return err
		}
	}
	progress.Begin("publishing", -1, "files")
	defer progress.End()
	return d.sendLast(last, key, !overwrite)
}

// Adopt copies an object of this bucket, which has a file of a part, into the dataset within the bucket, and leaves a
// marker for it in the stage. A file that is too small for a marker is read, and sent with the manifest.
func (d *Destination) Adopt(from string, f store.File, stage *write.Stage, name string) error {
	if f.Bytes > mostCopied {
		return fmt.Errorf("%s has %s, more than stores copy in one request; merge without --keep-shards", d.Client.Name(from),
			units.Bytes(f.Bytes))
	}
	o, err := d.Client.Stat(d.Context, from)
	if err != nil {
		return err
	}
	if o.Size != f.Bytes {
		return fmt.Errorf("%s has %d bytes, and not %d: %w", d.Client.Name(from), o.Size, f.Bytes, store.ErrCorrupt)
	}
	head := make([]byte, min(f.Bytes, layout.HeaderBytes))
	if f.Bytes < leastMarker {
		head = make([]byte, f.Bytes)
	}
	r := d.Client.NewReader(d.Context, o, 0, int64(len(head)))
	_, err = io.ReadFull(r, head)
	if err = errors.Join(err, r.Close()); err == nil {
		err = stage.Folder.WriteFile(name, head)
	}
	if err != nil || f.Bytes < leastMarker {
		return err
	}
	key := d.URL.Key + "/" + name
	if err := d.Client.Copy(d.Context, from, key); err != nil {
		return err
	}
	if o, err = d.Client.Stat(d.Context, key); err != nil {
		return err
	}
	return marker{Key: key, Size: o.Size, ETag: o.ETag, CRC32C: f.CRC32C}.replace(stage.Folder.Path(name))
}

// sendLast sends the file that completes a dataset. If it exists already with the same bytes, that is not an
// error: this is the answer to a request that was repeated, or two processes built the same dataset.
func (d *Destination) sendLast(path, key string, ifNotExist bool) error {
	err := d.sendFile(path, key, remote.WriteOptions{IfNotExist: ifNotExist})
	if !errors.Is(err, remote.ErrExists) {
		return err
	}
	o, statErr := d.Client.Stat(d.Context, key)
	crc, ownErr := CRCOf(path)
	if statErr != nil || ownErr != nil || SameObject(d.Context, d.Client, o, crc) != nil {
		return err
	}
	return nil
}

// sendFile sends one file under a key.
func (d *Destination) sendFile(path, key string, opts remote.WriteOptions) error {
	_, err := sendFile(d.Context, d.Client, path, key, opts)
	return err
}

// sendShards sends the files of a flat dataset that are not in the bucket yet, all but the manifest. When it returns,
// all of these files are in the bucket, and files that an earlier run has left are removed.
func (d *Destination) sendShards(folder, key string, progress progress) error {
	files, err := shardFiles(folder, key)
	if err != nil {
		return err
	}
	if err := d.sendAll(unsent(files), progress); err != nil {
		return err
	}
	return d.arrived(files, key, func(name string) bool {
		return strings.HasSuffix(name, ".npy") && !strings.Contains(name, "/") || isGeneration(name)
	}, progress)
}

// isGeneration reports whether a file is the manifest of a generation, or a tag. A new dataset has no such files, so
// they are left over from the dataset that it replaced.
func isGeneration(name string) bool { return strings.HasPrefix(name, layout.Generations+"/") }

// sendZarr is sendShards for a dataset in Zarr. Chunks that an earlier run left in one of the dataset's arrays are
// removed, as a reader would take them for data. With overwrite, arrays that only the old dataset has are removed, too.
func (d *Destination) sendZarr(overwrite bool, progress progress) error {
	files, err := zarrFiles(d.Local, d.URL.Key)
	if err != nil {
		return err
	}
	if err := d.sendAll(files, progress); err != nil {
		return err
	}
	folders := make(map[string]bool)
	for _, f := range files {
		folders[path.Dir(f.key)] = true
	}
	return d.arrived(files, d.URL.Key, func(name string) bool {
		return zarrName.MatchString(path.Base(name)) && name != layout.ZarrManifest &&
			(overwrite || folders[d.URL.Key+"/"+path.Dir(name)]) || isGeneration(name)
	}, progress)
}

// zarrName matches the names of Zarr files that package store writes.
var zarrName = regexp.MustCompile(`^(zarr\.json|c(\.[0-9]+)+)$`)

// shardFiles lists the files of a flat dataset without the manifest. Some of these files are markers.
func shardFiles(folder, key string) (list []item, err error) {
	text, err := os.ReadFile(filepath.Join(folder, layout.ManifestName))
	if err != nil {
		return nil, err
	}
	m, err := store.DecodeManifest(text)
	if err != nil {
		return nil, err
	}
	for _, s := range m.Shards {
		for _, f := range s.Files {
			list = append(list, item{path: filepath.Join(folder, f.Name), key: key + "/" + f.Name, size: f.Bytes, crc: f.CRC32C,
				keep: f.Bytes < leastMarker})
		}
	}
	return list, nil
}

// zarrFiles lists the files of a dataset in Zarr but for the manifest. Each stays in place: its index is at its start.
func zarrFiles(folder, key string) (list []item, err error) {
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == LastFile(folder, part.Zarr) {
			return err
		}
		name, nameErr := filepath.Rel(folder, path)
		info, err := e.Info()
		if err = errors.Join(nameErr, err); err == nil {
			list = append(list, item{path: path, key: key + "/" + filepath.ToSlash(name), size: info.Size(), keep: true})
		}
		return err
	})
	return list, err
}

// unsent returns the files that are not in the bucket under their final key. A marker with another key or checksum
// counts as not sent: the queue then copies the object, or reports that it differs.
func unsent(files []item) (list []item) {
	for _, p := range files {
		if was, ok := readMarker(p.path); !ok || was.Key != p.key || was.CRC32C != p.crc {
			list = append(list, p)
		}
	}
	return list
}

// sendAll sends files, several at a time: large ones first, then small ones with more workers, as they take the time of
// a request, whatever their bytes. The nodes of a Zarr hierarchy are sent after all chunks.
func (d *Destination) sendAll(list []item, progress progress) error {
	total := int64(0)
	for _, p := range list {
		total += p.size
	}
	progress.Begin("sending", total>>10, "KiB")
	defer progress.End()
	sum := int64(0)
	sent := func(n int64) {
		before := sum >> 10
		sum += n
		progress.Add(sum>>10 - before)
	}
	large := func(p item) bool { return p.size >= leastMarker }
	// to readers of Zarr, a chunk that is missing is zeros, so no array may appear before its chunks
	node := func(p item) bool { return path.Base(p.key) == layout.ZarrNode }
	err := d.sendSome(Uploads, list, func(p item) bool { return large(p) && !node(p) }, sent)
	if err == nil {
		err = d.sendSome(smallUploads, list, func(p item) bool { return !large(p) && !node(p) }, sent)
	}
	if err == nil {
		err = d.sendSome(smallUploads, list, node, sent)
	}
	return err
}

// sendSome sends the wanted items of a list.
func (d *Destination) sendSome(workers int, list []item, wanted func(item) bool, sent func(int64)) error {
	s := newQueue(d.Context, d.Client, workers, sent)
	defer s.close()
	for _, p := range list {
		if wanted(p) {
			s.put(p)
		}
	}
	return s.settle(0)
}

// arrived makes sure that all files of a dataset are in the bucket with their sizes, and removes the stray objects that
// an earlier run has left. It comes before the manifest is sent, so that a manifest never lists a missing object.
func (d *Destination) arrived(files []item, key string, stray func(name string) bool, progress progress) error {
	missing := make(map[string]int64)
	for _, f := range files {
		missing[f.key] = f.size
	}
	var strays []string
	for o, err := range d.Client.List(d.Context, key+"/", "") {
		if err != nil {
			return err
		}
		if size, ok := missing[o.Key]; ok && size == o.Size {
			delete(missing, o.Key)
		} else if !ok && stray(strings.TrimPrefix(o.Key, key+"/")) {
			strays = append(strays, o.Key)
		}
	}
	for name, size := range missing { // not in the listing, which may be late: ask for each
		if o, err := d.Client.Stat(d.Context, name); errors.Is(err, fs.ErrNotExist) || err == nil && o.Size != size {
			return lost(d.Client.Name(name))
		} else if err != nil {
			return err
		}
	}
	if len(strays) > 0 {
		progress.Note(fmt.Sprintf("%s of a run before this one are removed from %s\n",
			units.Counted(int64(len(strays)), "object"), d.Client.Name(key)))
	}
	for _, stray := range strays {
		if err := d.remove(stray); err != nil {
			return err
		}
	}
	return nil
}
