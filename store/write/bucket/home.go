// Package bucket changes datasets in buckets, flat or of Zarr. A commit is one conditional write: the manifest of the
// next generation is an object with the generation's number in its name, which is created only if it does not exist.
// The files that the manifest lists have been sent before, under names with random digits, and are never replaced.
package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Home is the dataset under a key of a bucket. Its methods may be called from any goroutine.
type Home struct {
	ctx     context.Context
	client  *requests.Client
	objects *requests.Folder
	key     string
	spool   string
}

var _ write.ArrayHome = (*Home)(nil)

// New returns the dataset under a key. The context ends all requests. Columns are built on this machine before they are
// sent, in a folder of this user in spool; an empty spool is the system's folder of temporary files.
func New(ctx context.Context, b remote.Bucket, key, spool string) *Home {
	if spool == "" {
		spool = os.TempDir()
	}
	client := requests.NewClient(b, remote.Policy{})
	return &Home{ctx, client, client.Folder(ctx, key), key, spool}
}

// Folder implements write.Home.
func (h *Home) Folder() store.Folder {
	return store.Folder{FS: h.objects, Name: h.client.Name(h.key)}
}

// Check implements write.Home.
func (h *Home) Check() error {
	_, err := h.Folder().Manifest("")
	if errors.Is(err, fs.ErrNotExist) && h.IsObject() {
		err = h.ErrObject()
	}
	return err
}

// ErrObject returns the error of a change of a dataset that is one object.
func (h *Home) ErrObject() error {
	return fmt.Errorf("it is one object, and a bucket cannot change a part of one; make a flat dataset of it, which "+
		"changes: %s: %w", shell.Rewrite(h.client.Name(h.key), ""), store.ErrUnsupported)
}

// IsObject reports whether the key names an object, such as an HDF5 file, and not the folder of a dataset.
func (h *Home) IsObject() bool {
	_, err := h.client.Stat(h.ctx, h.key)
	return err == nil
}

// Commit implements write.Home. The object with the number of the next generation is created only if it does not exist,
// which is the compare-and-swap. Every other step comes before this step or does not matter to readers of penstock: a
// crash before it leaves objects that Prune removes, a crash after it leaves an older manifest.json.
func (h *Home) Commit(base, next *store.Manifest) error {
	files, err := write.EncodeGeneration(h.objects, next)
	if err != nil {
		return err
	}
	if err := h.keep(base); err != nil {
		return err
	}
	if err := h.create(layout.GenerationName(next.Generation), files[len(files)-1].Text); err != nil {
		return err
	}
	return write.Committed(next.Generation, h.forward(next.Generation, files))
}

// keep gives the manifest of base the name of its generation, and then asks the store to create the same object again,
// which it has to refuse. A store that ignores the condition would let two writers commit the same generation, and one
// of the changes would be lost without an error.
func (h *Home) keep(base *store.Manifest) error {
	name := layout.GenerationName(base.Generation)
	text, err := fs.ReadFile(h.objects, name)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = h.newest(base); err == nil {
			err = h.create(name, text)
		}
	}
	if err != nil {
		return err
	}
	switch err := h.client.WriteAll(h.ctx, h.objects.Key(name), text, remote.WriteOptions{IfNotExist: true}); {
	case err == nil:
		return fmt.Errorf("%s: the store has replaced an object that was to be created only if there is none, so writers "+
			"cannot be kept apart: %w", h.client.Name(h.objects.Key(name)), store.ErrUnsupported)
	case errors.Is(err, remote.ErrExists):
		return nil
	default:
		return err
	}
}

// newest returns the text of the manifest in the folder, which must be base.
func (h *Home) newest(base *store.Manifest) ([]byte, error) {
	name := write.ManifestName(base)
	text, err := fs.ReadFile(h.objects, name)
	if err != nil {
		return nil, err
	}
	m, err := store.DecodeManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if m.Generation != base.Generation {
		return nil, write.ErrLost
	}
	return text, nil
}

// create creates an object only if it does not exist. If the object exists with other content, the error is
// write.ErrLost. The answer to a request may be lost and the request be repeated: then the existing object has the same
// content, and create succeeds.
func (h *Home) create(name string, text []byte) error {
	err := h.client.WriteAll(h.ctx, h.objects.Key(name), text, remote.WriteOptions{IfNotExist: true})
	if err == nil || refused(err) {
		return err
	}
	there, readErr := fs.ReadFile(h.objects, name)
	switch {
	case readErr != nil:
		return fmt.Errorf("%w: %w", write.ErrUnknown, err)
	case !bytes.Equal(there, text):
		return write.ErrLost
	}
	return nil
}

// refused reports whether an error says for certain that a request had no effect. After any other error the object may
// exist.
func refused(err error) bool {
	return errors.Is(err, remote.ErrPermission) || errors.Is(err, remote.ErrInvalid) ||
		errors.Is(err, remote.ErrNoBucket) || errors.Is(err, remote.ErrNotFound)
}

// forward writes the files that each generation replaces (manifest.json and Zarr's root) for a generation, or for a
// later generation if it exists: two writers that forward at once may overtake each other, and the newest files have
// to be written last. Readers do not depend on forward: they also look for the generation after the newest that they
// found.
func (h *Home) forward(generation int, files []write.NewestFile) error {
	for {
		for _, f := range files {
			if err := h.client.WriteAll(h.ctx, h.objects.Key(f.Name), f.Text, remote.WriteOptions{}); err != nil {
				return err
			}
		}
		generation++
		next, err := fs.ReadFile(h.objects, layout.GenerationName(generation))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if files, err = write.FilesOf(h.objects, next); err != nil {
			return err // another writer may have replaced the files before this one did
		}
	}
}

// Spool implements write.Home. Each dataset has a folder of its own, which is the same for each process, so that a
// column can be resumed after its process has stopped.
func (h *Home) Spool(field string) (dest string, release func(), err error) {
	var folder string
	for range 100 { // another process may remove the empty folder of the user in between
		if folder, err = spoolFolder(h.spool, h.client.Name(h.key)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("the spool: %w", err)
	}
	release = func() {
		if os.Remove(folder) == nil {
			_ = os.Remove(filepath.Dir(folder))
		}
	}
	return filepath.Join(folder, layout.FileName(field)+write.ColumnName), release, nil
}

// spoolFolder makes the folder for the columns of a dataset. The name of the dataset enters by a checksum, as it may be
// longer than a file name.
func spoolFolder(spool, name string) (string, error) {
	user, err := private.UserFolder(spool)
	if err != nil {
		return "", err
	}
	defer user.Close()
	sum := sha256.Sum256([]byte(name))
	own, err := private.Make(user, "columns-"+hex.EncodeToString(sum[:8]))
	if err != nil {
		return "", err
	}
	return own.Name(), own.Close()
}

// uploads is how many files are sent at a time.
const uploads = 8

// Publish implements write.Home. It sends the files, several at a time, and then checks that every file has arrived.
func (h *Home) Publish(stage *write.Stage, files []write.Published) error {
	all, ctx := errgroup.WithContext(h.ctx)
	all.SetLimit(uploads)
	for _, f := range files {
		if all.Go(func() error { return h.send(ctx, stage, f) }); ctx.Err() != nil {
			break
		}
	}
	if err := cmp.Or(all.Wait(), context.Cause(h.ctx)); err != nil {
		return err
	}
	return h.arrived(files)
}

// send sends a file of a stage. Each attempt opens the file again, from its start.
func (h *Home) send(ctx context.Context, stage *write.Stage, f write.Published) error {
	open := func() (io.ReadCloser, error) { return stage.Folder.Root().Open(f.From) }
	return h.client.WriteFrom(ctx, h.objects.Key(f.Name), f.Bytes, open, remote.WriteOptions{})
}

// arrived checks that the objects exist with their sizes, just before the manifest lists them: sending may take longer
// than the age after which [Home.Prune] of another process removes objects that no generation lists.
func (h *Home) arrived(files []write.Published) error {
	for _, f := range files {
		o, err := h.client.Stat(h.ctx, h.objects.Key(f.Name))
		if err != nil {
			return err
		}
		if o.Size != f.Bytes {
			return fmt.Errorf("%s has %d bytes, and not %d: %w", h.client.Name(o.Key), o.Size, f.Bytes, store.ErrCorrupt)
		}
	}
	return nil
}

// Unpublish implements write.Home.
func (h *Home) Unpublish(names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, h.remove(name))
	}
	return errors.Join(errs...)
}

// remove removes an object, if it exists.
func (h *Home) remove(name string) error {
	if err := h.client.Delete(h.ctx, h.objects.Key(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// holds is the folder of objects that keep Prune from removing the files of a generation for a moment. Each process
// that holds a generation has an object there.
const holds = layout.Generations + "/holds"

// Hold implements write.Home. Hold creates its object before it looks for the generation, and Prune removes the
// generation before it looks for such objects. Whatever the order of the requests, one of the two sees the other: Hold
// finds no generation, or Prune takes the generation back.
func (h *Home) Hold(m *store.Manifest) (release func() error, err error) {
	name := holds + "/" + write.RandomTag() + write.RandomTag() + ".json"
	text, err := json.Marshal(store.Tag{Generation: m.Generation, ID: m.ID})
	if err == nil {
		err = h.client.WriteAll(h.ctx, h.objects.Key(name), text, remote.WriteOptions{})
	}
	if err != nil {
		return nil, err
	}
	release = func() error { return h.remove(name) }
	_, err = h.objects.Stat(layout.GenerationName(m.Generation))
	if errors.Is(err, fs.ErrNotExist) {
		return release, fmt.Errorf("generation %d was removed: %w", m.Generation, fs.ErrNotExist)
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// CreateTag implements write.Home. The generation is looked for again after the tag exists, for the reason given at
// Hold: Prune may have removed it in between.
func (h *Home) CreateTag(m *store.Manifest, name string, text []byte) error {
	if _, err := h.objects.Stat(layout.GenerationName(m.Generation)); errors.Is(err, fs.ErrNotExist) {
		if err := h.keep(m); err != nil {
			return err
		}
	}
	file := layout.Tags + "/" + name + ".json"
	err := h.create(file, text)
	if errors.Is(err, write.ErrLost) {
		return fmt.Errorf("the tag %w; remove it first, or choose another name", store.ErrExist)
	}
	if err != nil {
		return err
	}
	_, err = h.objects.Stat(layout.GenerationName(m.Generation))
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(fmt.Errorf("generation %d was removed: %w", m.Generation, fs.ErrNotExist), h.remove(file))
	}
	return err
}

// RemoveTag implements write.Home.
func (h *Home) RemoveTag(name string) error {
	err := h.client.Delete(h.ctx, h.objects.Key(layout.Tags+"/"+name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has no such tag: %w", fs.ErrNotExist)
	}
	return err
}
