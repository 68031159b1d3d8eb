package prepare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/remote"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/write"
)

// readAhead is how many samples of a bucket are being read at a time: at 50 ms a request, and
// 100 KB an image, 64 of them are 128 MB/s.
const readAhead = 64

// remoteRun is a run or a merge with places in buckets.
type remoteRun struct{ *upload.Buckets }

// runRemote is Run if source, destination or both are URLs. A source is read in place.
// A dataset is built on disk, see Config.Spool, and sent: of a flat one each shard when it is
// finished, see upload.Uploader. Its manifest is the last object.
func runRemote(ctx context.Context, c setup) (*Summary, error) {
	b := remoteRun{&upload.Buckets{Context: ctx, Warn: c.progress.Warn}}
	defer b.Close()
	s, err := b.run(c)
	if s != nil && remote.IsURL(c.Source) {
		s.Source.Path = b.Text(s.Source.Path)
	}
	return s, b.Explain(err)
}

// run is Run for a source or a destination in a bucket: the bucket is mounted, the dataset built in the spool, and its
// files sent while it grows. What is there already is looked at first.
func (b remoteRun) run(c setup) (*Summary, error) {
	if err := upload.ApartURLs(c.Source, c.Dest); err != nil {
		return nil, err
	}
	local := c
	var err error
	if local.Source, _, _, err = b.MountSource(c.Source, nil); err != nil {
		return nil, err
	}
	d, err := b.Destination(c.Dest, c.Spool, c.Rank)
	if err != nil {
		return nil, err
	}
	if d == nil {
		local.Dest = upload.LocalPath(c.Dest)
		return local.run(b.Context)
	}
	if c.Append {
		return b.append(local, d)
	}
	local.Dest, local.Overwrite = d.Local, !c.Resume || c.Overwrite
	replaces, err := d.Present(c.Overwrite, local.DatasetFormat())
	if err != nil {
		return b.complete(local, d, err, local.ofMade)
	}
	local.uploader = d.Uploader(local.DatasetFormat(), replaces)
	if c.Rank.Size > 0 {
		local.Overwrite, local.uploader = c.Overwrite, d.PartUploader(c.Rank, c.Overwrite)
		if local.partsAt, err = b.Mount(d.Sibling(".parts").Text); err != nil {
			return nil, err
		}
	}
	s, err := local.run(b.Context)
	if err != nil {
		return nil, local.uploader.Explain(err)
	}
	return s, send(d, s, c.Overwrite, c.progress)
}

// append is run for --append. The shards are built in the spool and sent when all records are made.
func (b remoteRun) append(c setup, d *upload.Destination) (*Summary, error) {
	c.Dest = d.Local
	to, err := openAppendTarget(b.Buckets, d, c.DatasetFormat())
	if err == nil {
		err = to.dropLeft(c.Dest, c.Resume)
	}
	if err != nil {
		return nil, err
	}
	c.appendTo = to
	s, err := c.run(b.Context)
	if err != nil {
		return nil, err
	}
	s.Dest = d.URL.String()
	return s, d.Finish(sendSkipped(d, c.skippedName()))
}

// send uploads the dataset of a summary, and sets its destination in the summary.
func send(d *upload.Destination, s *Summary, overwrite bool, progress Progress) error {
	if s.Part == nil {
		s.Dest = d.URL.String()
		return d.Finish(d.SendDataset(s.Format, overwrite, progress))
	}
	w := part.Rank{Index: s.Part.Rank, Size: s.Part.WorldSize}
	s.Dest, s.Part.Dest = d.PartURL(w), d.URL.String()
	return d.Finish(d.SendPart(w, s.Records, overwrite, progress))
}

// mergeRemote is Merge if parts or destination are URLs.
func mergeRemote(ctx context.Context, m merge) (*Summary, error) {
	b := remoteRun{&upload.Buckets{Context: ctx, Warn: m.progress.Warn}}
	defer b.Close()
	s, err := b.merge(m)
	return s, b.Explain(err)
}

// merge is Merge with parts or the dataset in a bucket. Parts are removed at the very end, by this function and not by
// Merge, since they are the only copy until the last file was sent.
func (b remoteRun) merge(m merge) (*Summary, error) {
	local, folders := m, m.Parts
	d, err := b.Destination(m.Dest, m.Spool, part.Rank{})
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 {
		folders = []string{part.Folder(m.Dest)}
		if d != nil {
			folders = []string{d.Sibling(".parts").Text}
		}
	}
	local.RemoveParts = false
	if local.Parts, err = b.MountAll(folders); err != nil {
		return nil, err
	}
	if s, err := b.removeLeft(m, d, folders, local.Parts); s != nil || err != nil {
		return s, err
	}
	if d == nil {
		local.Dest = upload.LocalPath(m.Dest)
	} else {
		format := formatOf(d.Local)
		replaces, err := d.Present(m.Overwrite, format)
		if err != nil {
			return b.merged(m, local, d, folders, err)
		}
		local.Dest, local.Overwrite, local.uploader = d.Local, !m.Resume || m.Overwrite, d.Uploader(format, replaces)
		if m.KeepShards && replaces {
			return nil, fmt.Errorf("--keep-shards: %s exists already and cannot be replaced by files of parts; remove it, "+
				"or choose another name", d.URL)
		}
		if m.KeepShards {
			local.take, err = b.takeInside(d, folders, local.Parts)
		}
		if err != nil {
			return nil, err
		}
	}
	s, err := local.run(b.Context)
	if err != nil {
		return nil, local.uploader.Explain(err)
	}
	s.Source.Path = b.Text(s.Source.Path)
	if m.RemoveParts {
		err = b.markMerged(folders, local.Parts, s, upload.LastFile(local.Dest, s.Format))
	}
	if err == nil && d != nil {
		err = send(d, s, m.Overwrite, m.progress)
	}
	if err != nil {
		return nil, err
	}
	for i := range s.Hints {
		s.Hints[i] = b.Text(s.Hints[i])
	}
	if m.RemoveParts {
		err = b.removeAll(folders, s.ID)
	}
	return s, err
}

// takeInside returns the copier of parts' files within the bucket of the dataset; nil if they are
// elsewhere.
func (b remoteRun) takeInside(d *upload.Destination, folders, paths []string) (part.TakeFile, error) {
	keys := make(map[string]string) // of folders, by path
	for i, f := range folders {
		if !upload.InBucket(f) {
			return nil, nil
		}
		u, err := remote.ParseURL(f)
		if err != nil {
			return nil, err
		}
		if u.Name() != d.URL.Name() {
			return nil, nil
		}
		keys[paths[i]] = u.Key
	}
	return func(p *part.Part, f store.File, stage *write.Stage, name string) error {
		folder, base := filepath.Split(p.Path)
		return d.Adopt(keys[filepath.Clean(folder)]+"/"+base+"/"+f.Name, f, stage, name)
	}, nil
}

// removeAll removes folders of parts that dataset id was built from, and then the mark.
func (b remoteRun) removeAll(folders []string, id string) error {
	for _, f := range folders {
		if !upload.InBucket(f) {
			if err := part.Remove([]string{upload.LocalPath(f)}, id); err != nil {
				return err
			}
			continue
		}
		c, u, err := b.Client(f)
		if err != nil {
			return err
		}
		for o, err := range c.List(b.Context, u.Key+"/", "") {
			if err == nil {
				err = c.Delete(b.Context, o.Key)
			}
			if err != nil {
				return part.RemoveError(err)
			}
		}
	}
	if err := b.unmark(folders); err != nil {
		return part.RemoveError(err)
	}
	return nil
}

// complete is the twin of the function complete for a dataset of several files in a bucket: where present says that
// there is a dataset, and --resume asks to continue the run that made it, the run is done. info describes its source,
// or returns the error that it was made in another way. Files of the run on this machine are removed. Without such a
// dataset complete returns present.
func (b remoteRun) complete(c setup, d *upload.Destination, present error,
	info func(*store.Manifest) (source.Info, error)) (*Summary, error) {
	if !errors.Is(present, store.ErrExist) || !c.Resume || c.Rank.Size > 0 || c.DatasetFormat() == part.HDF5 {
		return nil, present
	}
	text, _, err := d.Client.ReadAll(d.Context, d.ManifestKey(c.DatasetFormat()), part.MaxFile)
	if err != nil {
		return nil, err
	}
	m, err := store.DecodeManifest(text)
	if err != nil {
		return nil, present
	}
	of, err := info(m)
	if err != nil {
		return nil, err
	}
	if c.Dest, err = b.Mount(d.Text); err != nil {
		return nil, err
	}
	s, err := c.describe(m, of)
	if err != nil {
		return nil, err
	}
	s.Dest = d.URL.String()
	return s, d.RemoveSpool()
}

// ofMade describes the source of an existing dataset, and returns an error if this Config would build another dataset.
func (c Config) ofMade(m *store.Manifest) (source.Info, error) {
	if list := c.differences(m); list != nil {
		return source.Info{}, madeOtherwise(c.Dest, list)
	}
	return infoOf(m), nil
}

// merged is complete for a merge; its parts, which are in folders, are removed if they are to be.
func (b remoteRun) merged(m, local merge, d *upload.Destination, folders []string, present error) (
	*Summary, error) {
	parts, err := part.Find(local.Parts)
	if err != nil {
		return nil, present
	}
	p := parts.Plan
	local.Dest = d.Local
	c, err := local.whole(p, local.Parts)
	if err != nil {
		return nil, err
	}
	s, err := b.complete(c, d, present, func(m *store.Manifest) (source.Info, error) {
		if !p.Became(m) {
			return source.Info{}, present
		}
		return p.Info(), nil
	})
	if err != nil {
		return nil, err
	}
	s.Source.Path = b.Text(s.Source.Path)
	if m.RemoveParts {
		err = b.removeAll(folders, s.ID)
	}
	return s, err
}
