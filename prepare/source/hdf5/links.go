package hdf5

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source/array"
)

// unfollowed returns the links that are not followed. missed are links that may hold records, in another file or as an
// object of an unknown kind; of links to other files, only the first is in missed. bad are soft links without a target
// in this file.
func (f *File) unfollowed() (bad, missed array.Rejections) {
	external := false
	for l := range f.meta.Walk() {
		switch err := f.missed(l); {
		// Files of links to many other files would fill the message.
		case l.Kind == meta.External && external:
		case err != nil:
			missed = append(missed, array.Rejection{Name: l.Path, Err: err})
			external = external || l.Kind == meta.External
		case l.Kind == meta.Soft:
			if _, err := f.meta.Lookup(l.Path); err != nil {
				bad = append(bad, array.Rejection{Name: l.Path, Err: fmt.Errorf("a soft link to %s: %w", l.Target, err)})
			}
		}
	}
	return bad, missed
}

// missed returns the error of a link that may hold records, in another file or as an object of an unknown kind; nil for
// any other link.
func (f *File) missed(l *meta.Link) error {
	switch {
	case l.Err != nil:
		return l.Err
	case l.Kind == meta.External:
		return f.externalLink(l)
	case l.Kind == meta.UserDefined:
		return fmt.Errorf("a user-defined link: %w", meta.ErrUnsupported)
	}
	return nil
}

// externalLink returns the error of a link to another file, which says how to read that file.
func (f *File) externalLink(l *meta.Link) error {
	ext := filepath.Ext(f.path)
	return fmt.Errorf("a link to %s in the file %s, which is not followed: %w; give that file as the source, or copy all "+
		"into one file: %s", l.Target, l.File, meta.ErrUnsupported, shell.Command("h5copy -f ext -i", f.path)+
		shell.Command(" -o", strings.TrimSuffix(f.path, ext)+"-all"+ext)+" -s / -d /all")
}
