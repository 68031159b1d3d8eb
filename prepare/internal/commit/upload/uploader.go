package upload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// Uploader sends the files of a flat dataset while it is built. A file that is finished at a checkpoint is final;
// once it is in the bucket, a marker takes its place here. So the disk has to hold the open shards and the finished
// shards that wait for the link.
//
// With splits, only the shards of the first split have their final numbers from the start; the numbers of all others
// depend on how many shards the splits before have, which is known at the end. Their files are sent under temporary
// names and copied within the bucket.
type Uploader struct {
	to     *Destination
	folder string // the dataset, as Config.Dest has it
	key    string // of the folder in the bucket
	seal   string // an object that marks an old dataset as complete: it is removed first
	first  string // what names of files of the first split begin with, while it is built

	sender *queue
	known  map[string]bool // files of the build that are sent, or wait for that
	begun  bool
}

const (
	Uploads      = 2       // files that are sent at a time, each in several parts
	smallUploads = 16      // of one part
	checks       = 16      // files that are looked at at a time
	mostWaiting  = 1 << 30 // bytes that wait for the link before the build does
	mostCopied   = 4 << 30 // bytes of a file that every store copies in one request
)

// Follow returns a Writer that sends the files that w has finished, if w makes the dataset of this Uploader. Files that
// an earlier build sent must still be in the bucket: their bytes are no longer on this machine, so it is better to fail
// now than at the end.
func (o *Uploader) Follow(w store.Writer, dest string, splits []string) (store.Writer, error) {
	if o == nil || dest != o.folder {
		return w, nil
	}
	o.known = make(map[string]bool)
	if len(splits) > 0 {
		o.first = layout.FileName(splits[0]) + "+"
	}
	if err := o.check(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	o.sender = newQueue(o.to.Context, o.to.Client, Uploads, func(int64) {})
	return &sending{w, o}, nil
}

// Build sets the folder where the dataset is built.
func (o *Uploader) Build(folder string) {
	if o != nil {
		o.folder = folder
	}
}

// building is the folder in which package store builds the dataset, see docs/format.md.
func (o *Uploader) building() string {
	return filepath.Join(filepath.Dir(o.folder), "."+filepath.Base(o.folder)+".building")
}

// check makes sure that the objects of all markers in the folder of the build still exist.
func (o *Uploader) check() error {
	s := newQueue(o.to.Context, o.to.Client, checks, func(int64) {})
	defer s.close()
	err := eachMarker(o.building(), func(name string, was marker) {
		o.known[name] = true
		s.put(item{path: filepath.Join(o.building(), name), key: was.Key, size: was.Size})
	})
	return errors.Join(err, s.settle(0))
}

// eachMarker calls f for each file of a folder that is a marker. A folder that does not exist has no files.
func eachMarker(folder string, f func(name string, was marker)) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if was, ok := readMarker(filepath.Join(folder, e.Name())); ok {
			f(e.Name(), was)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// offer sends the files that are finished and were not sent before. A file with a temporary name is left for the end if
// it is too large for a store to copy in one request.
func (o *Uploader) offer() error {
	entries, err := os.ReadDir(o.building())
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if o.known[name] || filepath.Ext(name) != ".npy" {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		own := strings.TrimPrefix(name, o.first)
		if !isFinal(info.Mode()) || info.Size() < leastMarker || strings.Contains(own, "+") && info.Size() > mostCopied {
			continue
		}
		if err := o.begin(); err != nil {
			return err
		}
		o.known[name] = true
		o.sender.put(item{path: filepath.Join(o.building(), name), key: o.key + "/" + own, size: info.Size()})
	}
	return o.sender.settle(mostWaiting)
}

// begin removes the object that says that the dataset is complete, before the first of its files is replaced. A stop
// from then on leaves no dataset, rather than an old seal on new files.
func (o *Uploader) begin() error {
	if o.begun || o.seal == "" {
		return nil
	}
	o.begun = true
	return o.to.remove(o.seal)
}

// Explain adds to an error how many files of the build are in the bucket, and whether a later run uses or removes them.
func (o *Uploader) Explain(err error) error {
	if o == nil || err == nil || errors.Is(err, ErrLost) {
		return err
	}
	count, size := int64(0), int64(0)
	for _, folder := range []string{o.building(), o.folder} {
		_ = eachMarker(folder, func(_ string, was marker) { // what cannot be read is not counted
			count++
			size += was.Size
		})
	}
	if count == 0 {
		return err
	}
	return fmt.Errorf("%w; %s of it (%s) are in %s, without a manifest: --resume keeps them and continues, and a run "+
		"without it replaces them",
		err, units.Counted(count, "file"), units.Bytes(size), o.to.Client.Name(o.key))
}

// sending is a Writer of a dataset that an Uploader follows.
type sending struct {
	store.Writer
	box *Uploader
}

// Append implements store.Writer.
func (w *sending) Append(r *store.Record) error {
	if err := w.box.sender.failed(); err != nil {
		return err
	}
	return w.Writer.Append(r)
}

// AppendBlock adds the records of a block, see write.AppendBlock.
func (w *sending) AppendBlock(b *digest.Block) error {
	if err := w.box.sender.failed(); err != nil {
		return err
	}
	return write.AppendBlock(w.Writer, b)
}

// Checkpoint implements store.Writer. Files are offered after the checkpoint is written: only then a resumed build does
// not change them. A failed upload is the error of the next Append or of Commit, as the records are safe.
func (w *sending) Checkpoint(note json.RawMessage) error {
	if err := w.Writer.Checkpoint(note); err != nil {
		return err
	}
	if err := w.box.offer(); err != nil && w.box.sender.failed() == nil {
		return err
	}
	return nil
}

// Commit implements store.Writer. It waits for the files that are on their way, and leaves the others to the function
// that publishes the dataset.
func (w *sending) Commit(info store.Info) (*store.Manifest, error) {
	if err := w.box.sender.settle(0); err != nil {
		return nil, err
	}
	return w.Writer.Commit(info)
}

// Close implements store.Writer.
func (w *sending) Close() error {
	w.box.sender.close()
	return w.Writer.Close()
}
