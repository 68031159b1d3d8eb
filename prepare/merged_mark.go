package prepare

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/requests"
	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/internal/commit/part"
	"github.com/penstock/penstock/prepare/internal/commit/upload"
	"github.com/penstock/penstock/remote"
)

// mergedMark says which parts became which dataset. Folders in buckets cannot be renamed in one step, so a merge that
// is to remove the parts writes the mark next to them before it publishes the dataset. After a kill, the next merge
// finds the mark and removes the rest of these parts, and nothing else. Without a mark, it could not tell parts of
// which some are removed from parts that were never made.
type mergedMark struct {
	Summary *Summary          `json:"summary"`
	Size    int64             `json:"size"`   // of the file of the dataset that is written last
	CRC32C  string            `json:"crc32c"` // of that
	Parts   map[string]string `json:"parts"`  // CRC32C of the parts' files, by name
}

// mergedEnding follows the name of the folder of parts in the name of its mark.
const mergedEnding = ".merged"

// markMerged writes the marks which say that the parts in some folders became a dataset. paths are the folders as they
// are mounted. last is the file of the dataset that is written last, which identifies it.
func (b remoteRun) markMerged(folders, paths []string, s *Summary, last string) error {
	if !slices.ContainsFunc(folders, upload.InBucket) {
		return nil
	}
	info, err := os.Stat(last)
	if err != nil {
		return err
	}
	m := mergedMark{Summary: s, Size: info.Size()}
	if m.CRC32C, err = upload.CRCOf(last); err != nil {
		return err
	}
	if m.Parts, err = seals(paths); err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.eachMark(folders, func(c *requests.Client, key string) error {
		return c.WriteAll(b.Context, key, text, remote.WriteOptions{ContentType: "application/json"})
	})
}

// eachMark calls f with the key of the mark of each folder that is in a bucket.
func (b remoteRun) eachMark(folders []string, f func(c *requests.Client, key string) error) error {
	for _, folder := range folders {
		if !upload.InBucket(folder) {
			continue
		}
		c, u, err := b.Client(folder)
		if err == nil {
			err = f(c, u.Key+mergedEnding)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seals returns the checksums of the files of all parts that are whole, by name.
func seals(paths []string) (map[string]string, error) {
	list := make(map[string]string)
	for _, path := range paths {
		if part.Gone(path) {
			continue
		}
		parts, err := part.List(path)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			data, err := vfs.ReadFile(part.File(p), nil)
			if err != nil {
				return nil, err
			}
			list[filepath.Base(p)] = layout.HexCRC(layout.CRC32C(data))
		}
	}
	return list, nil
}

// removeLeft finishes what a killed merge has begun: it removes what is left of the parts that became the dataset, and
// returns the dataset's summary. It returns nil if there is no mark. A mark that is no longer true, such as after parts
// were made again, is removed instead.
func (b remoteRun) removeLeft(m merge, d *upload.Destination, folders, paths []string) (*Summary, error) {
	mark, err := b.mark(folders)
	if mark == nil || err != nil {
		return nil, err
	}
	holds, err := mark.holds(m, d, paths)
	if err != nil {
		return nil, err
	}
	if !holds {
		return nil, b.unmark(folders)
	}
	if d != nil {
		if err := d.RemoveSpool(); err != nil {
			return nil, err
		}
	}
	return mark.summary(m, d), b.removeAll(folders, mark.Summary.ID)
}

// mark returns the first mark in some folders; nil if no folder has a mark.
func (b remoteRun) mark(folders []string) (mark *mergedMark, err error) {
	err = b.eachMark(folders, func(c *requests.Client, key string) error {
		if mark != nil {
			return nil
		}
		data, _, err := c.ReadAll(b.Context, key, part.MaxFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		var read mergedMark
		if err == nil && json.Unmarshal(data, &read) == nil && read.Summary != nil {
			mark = &read
		}
		return err
	})
	return mark, err
}

// unmark removes the marks of some folders.
func (b remoteRun) unmark(folders []string) error {
	return b.eachMark(folders, func(c *requests.Client, key string) error {
		if err := c.Delete(b.Context, key); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// holds reports whether the mark is true: the dataset exists, and no parts exist other than the parts that it was
// built from. Parts that were made later are in no dataset, and must not be removed.
func (s *mergedMark) holds(m merge, d *upload.Destination, paths []string) (bool, error) {
	there, err := s.published(m, d)
	if !there || err != nil {
		return false, err
	}
	left, err := seals(paths)
	for name, crc := range left {
		if s.Parts[name] != crc {
			return false, nil
		}
	}
	return err == nil, err
}

// published reports whether the dataset that the mark describes exists. A mark does not show that, because it is written
// before its dataset is published: the last file of the dataset must be there, with the checksum that the mark states.
func (s *mergedMark) published(m merge, d *upload.Destination) (bool, error) {
	if d == nil {
		dest := upload.LocalPath(m.Dest)
		crc, err := upload.CRCOf(upload.LastFile(dest, formatOf(dest)))
		return err == nil && crc == s.CRC32C, nil
	}
	o, err := d.Client.Stat(d.Context, d.ManifestKey(formatOf(d.Local)))
	if errors.Is(err, fs.ErrNotExist) || err == nil && o.Size != s.Size {
		return false, nil
	}
	if err == nil {
		err = upload.SameObject(d.Context, d.Client, o, s.CRC32C)
	}
	if errors.Is(err, upload.ErrLost) {
		return false, nil
	}
	return err == nil, err
}

// summary returns the summary of the mark's dataset, which existed already.
func (s *mergedMark) summary(m merge, d *upload.Destination) *Summary {
	out := *s.Summary
	out.Dest = upload.LocalPath(m.Dest)
	if d != nil {
		out.Dest = d.URL.String()
	}
	out.Source.Ignored, out.Resumed, out.Seconds, out.PeakMemory = 0, 0, 0, usage.PeakMemory()
	out.Unit, out.Hints = "samples", []string{completeHint}
	return &out
}
