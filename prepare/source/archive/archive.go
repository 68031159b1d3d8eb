// Package archive reads samples from tar and zip archives: WebDataset shards, and archived folders of images.
//
// Members that share their name up to the first dot of its last element are one sample, and each extension is a
// column: 0001.jpg and 0001.cls are the image and the class of sample 0001
// (https://github.com/webdataset/webdataset). If no sample has more than one member, and some members are images,
// the archive is a folder of images instead, and its folders are the classes. [Open] reads tars, which can only be
// read from the front, so the members of a sample must follow each other. [OpenZip] reads zips by their directory,
// sorted by name.
//
// Before the first sample is read, a pass over all names collects columns, types and classes in an archiveScan and
// counts samples; only members whose content decides a type are read in it. With Options.Places, a sample of an
// uncompressed tar notes where its members are (a tarPlace) in place of their bytes, so that packages above can
// keep many samples and read them in any order. Members of zips are always read from their places.
//
// Archives may be hostile: names that lead out of the archive, decompression bombs, overlapping and sparse members
// are refused, and the members of one sample together have at most source.MaxValue bytes.
package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// archive is a source of tar files, plain or compressed, or of zip files.
type archive struct {
	ctx     context.Context
	root    *vfs.Root
	path    string
	files   []string
	info    source.Info
	columns []memberColumn // columns of WebDataset samples; empty for class folders
	folders *classFolders  // classes of an archive of image folders; nil for WebDataset samples
	counts  []fileCount    // samples by file, from the first pass
	zips    []*zipFile     // the open files of zip archives; nil for tars
	splits  source.FileSplits
	tars    []*tarFile // the files whose members are read from their places; nil if members are read in order
	packed  bool       // some tar is compressed, so members have no places
}

// fileCount is the number of samples in an archive by either reading: groups for WebDataset samples, images for
// class folders. Which one holds is known only after the pass.
type fileCount struct{ groups, images int64 }

// groups yields the groups of all archives from number first on. The data of members for whose extension want
// returns false is not read.
func (a *archive) groups(ctx context.Context, first int, want func(ext string) bool) iter.Seq2[group, error] {
	return func(yield func(group, error) bool) {
		for i, name := range a.files[first:] {
			groups := a.fileGroups
			if a.zips != nil {
				groups = a.zips[first+i].groups
			}
			more, err := groups(ctx, name, want, func(g group, err error) bool {
				g.number = first + i
				return yield(g, err)
			})
			if err != nil {
				yield(group{}, fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err)))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// fileGroups yields the groups of one tar file. It returns whether the caller wants more. A group is complete when
// a member with another key follows, so it is yielded one member late.
func (a *archive) fileGroups(ctx context.Context, name string, want func(ext string) bool,
	yield func(group, error) bool) (more bool, err error) {
	f, err := source.OpenStream(ctx, a.root, name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	plain := f.Seekable()
	r := newMemberReader(plain, want)
	_, seekable := plain.(io.Seeker)
	// A compressed archive has no places: its bytes exist only after decompression up to them.
	if a.packed = a.packed || !seekable; seekable {
		r.file = tarFileAt(a.tars, name)
	}
	g := group{file: name}
	// n counts members, to look at the context now and then without a call for each.
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		m, key, err := r.next(&g.ignored)
		if err != nil && err != io.EOF {
			return false, err
		}
		// Equal keys in two archives of a file are two groups: whether they are one sample is for keySet to decide.
		if len(g.members) > 0 && (err == io.EOF || key != g.key || r.part != g.part) {
			if !yield(g, nil) {
				return false, nil
			}
			g = group{file: name}
		}
		if err == io.EOF {
			return true, nil
		}
		g.key, g.part = key, r.part
		g.add(m)
	}
}

// prefix returns the prefix of the names of a group's samples, which makes names unique: the file if there are
// several files, and the number of the archive if a file has several archives.
func (a *archive) prefix(g group) string {
	name := ""
	if len(a.files) > 1 {
		name = filepath.ToSlash(g.file)
	}
	if g.part > 0 {
		name = fmt.Sprintf("%s@%d", cmp.Or(name, filepath.Base(g.file)), g.part+1)
	}
	if name != "" {
		name += "/"
	}
	return name
}

// Info implements Source.
func (a *archive) Info() source.Info { return a.info }

// Close implements Source.
func (a *archive) Close() (err error) {
	for _, z := range a.zips {
		err = errors.Join(err, z.file.Close())
	}
	for _, f := range a.tars {
		err = errors.Join(err, f.close())
	}
	a.zips, a.tars = nil, nil
	return errors.Join(err, a.root.Close())
}

// Places implements source.Placed.
func (a *archive) Places() bool { return a.zips != nil || a.tars != nil && !a.packed }

// Samples implements Source.
func (a *archive) Samples() iter.Seq2[source.Sample, error] { return a.From(0) }

// yield yields the samples of a group: the group itself, or each of its images.
func (a *archive) yield(g group, yield func(source.Sample, error) bool) bool {
	prefix := a.prefix(g)
	if a.folders == nil {
		return yield(source.Sample{Name: prefix + g.key, Split: a.splits.Of[g.file], Data: groupData{a, g}}, nil)
	}
	for _, m := range g.members {
		s := source.Sample{Name: prefix + m.name, Split: a.splits.Of[g.file], Data: imageMember{m, a.folders.label(m.name)}}
		// Splits in the archive come before splits in the names of files.
		if a.folders.splits {
			s.Split = a.folders.split(m.name)
		}
		if source.IsImageName(m.name) && !yield(s, nil) {
			return false
		}
	}
	return true
}

// wants reports whether members with an extension become part of samples.
func (a *archive) wants(ext string) bool {
	if a.folders != nil {
		return source.IsImageName("x." + ext)
	}
	for _, c := range a.columns {
		if c.takes(ext) {
			return true
		}
	}
	return false
}

// imageMember is the Data of an image in a class folder. label is the class number, -1 if the archive has no
// classes.
type imageMember struct {
	member member
	label  int64
}

// Read implements Data.
func (m imageMember) Read(v *source.Values) error {
	data, err := m.member.load()
	v.Borrow(0, data)
	if m.label >= 0 {
		source.PutInt(v, 1, m.label)
	}
	return err
}

// ReadField implements source.Parted: the class follows from the name, without a read of the image.
func (m imageMember) ReadField(v *source.Values, field int) bool {
	if field == 1 {
		source.PutInt(v, 1, m.label)
	}
	return field == 1
}

// groupData is the Data of a WebDataset sample.
type groupData struct {
	archive *archive
	group   group
}

// Read implements Data.
func (d groupData) Read(v *source.Values) error {
	for i, c := range d.archive.columns {
		if err := c.put(v, i, d.group); err != nil {
			return fmt.Errorf("member .%s: %w", c.name, err)
		}
	}
	return nil
}

// ReadField implements source.Parted for numbers that have a small member of their own, such as .cls.
func (d groupData) ReadField(v *source.Values, field int) bool {
	c := d.archive.columns[field]
	return c.kind == cellMember && !c.field.Ragged && c.put(v, field, d.group) == nil
}
