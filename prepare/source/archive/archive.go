// Package archive reads samples from tar and zip archives: WebDataset shards and archived folders of images.
//
// Members with one name up to the first dot of their last element are one sample, and each extension is a column:
// 0001.jpg and 0001.cls are the image and the class of sample 0001. An archive of class folders has the folders as
// labels instead. [Open] reads tars, which can only be read from the front, so members of a sample must follow each
// other; [OpenZip] reads zips by their directory, in the order of names.
//
// One pass over the names finds columns and counts samples before the first sample is read. It keeps where members are,
// so that packages above can ask for samples in any order where the archive is not compressed as a whole.
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

// archive is a source of tar files, also compressed, or of zip files: of samples as WebDataset names them,
// whose members follow each other and share their name up to the first dot, or of images
// in folders, which are the classes.
type archive struct {
	ctx     context.Context
	root    *vfs.Root
	path    string
	files   []string
	info    source.Info
	columns []memberColumn // of samples by WebDataset's names
	folders *classFolders  // nil for those
	counts  []fileCount    // by file
	zips    []*zipFile     // the files, where they are zip archives
	splits  source.FileSplits
	tars    []*tarFile // the files, where members are read from their places; nil where they are read in order
	packed  bool       // some tar archive is compressed
}

// fileCount says how many samples an archive has: groups, or images in class folders.
type fileCount struct{ groups, images int64 }

// groups yields what follows each other under one key, from the first archive on. Of members that want says no to, no
// data is read.
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
	if a.packed = a.packed || !seekable; seekable {
		r.file = tarFileAt(a.tars, name)
	}
	g := group{file: name}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		m, key, err := r.next(&g.ignored)
		if err != nil && err != io.EOF {
			return false, err
		}
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

// prefix stands before the names of samples, so that no two have one name.
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

// yield yields the samples of a group: itself, or its images.
func (a *archive) yield(g group, yield func(source.Sample, error) bool) bool {
	prefix := a.prefix(g)
	if a.folders == nil {
		return yield(source.Sample{Name: prefix + g.key, Split: a.splits.Of[g.file], Data: groupData{a, g}}, nil)
	}
	for _, m := range g.members {
		s := source.Sample{Name: prefix + m.name, Split: a.splits.Of[g.file], Data: imageMember{m, a.folders.label(m.name)}}
		if a.folders.splits {
			s.Split = a.folders.split(m.name)
		}
		if source.IsImageName(m.name) && !yield(s, nil) {
			return false
		}
	}
	return true
}

// wants reports whether members with that extension are part of the samples.
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

// imageMember is the Data of an image in a class folder; label is -1 without classes.
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

// ReadField implements source.Parted: the folder gives the class.
func (m imageMember) ReadField(v *source.Values, field int) bool {
	if field == 1 {
		source.PutInt(v, 1, m.label)
	}
	return field == 1
}

// groupData is the Data of a sample.
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

// ReadField implements source.Parted, for numbers in a separate member.
func (d groupData) ReadField(v *source.Values, field int) bool {
	c := d.archive.columns[field]
	return c.kind == cellMember && !c.field.Ragged && c.put(v, field, d.group) == nil
}
