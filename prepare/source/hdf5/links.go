package hdf5

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/source/array"
)

// unfollowed returns the links that lead to nothing that is read: missed may hold records, in another file or as an
// object of an unknown kind; bad leads to nothing in this file.
func (f *File) unfollowed() (bad, missed array.Rejections) {
	external := 0
	for l := range f.meta.Walk() {
		switch {
		case l.Err != nil:
			missed = append(missed, array.Rejection{Name: l.Path, Err: l.Err})
		case l.Kind == meta.External:
			if external++; external == 1 {
				missed = append(missed, array.Rejection{Name: l.Path, Err: f.externalLink(l)})
			}
		case l.Kind == meta.UserDefined:
			missed = append(missed,
				array.Rejection{Name: l.Path, Err: fmt.Errorf("a user-defined link: %w", meta.ErrUnsupported)})
		case l.Kind == meta.Soft:
			if _, err := f.meta.Lookup(l.Path); err != nil {
				bad = append(bad, array.Rejection{Name: l.Path, Err: fmt.Errorf("a soft link to %s: %w", l.Target, err)})
			}
		}
	}
	return bad, missed
}

// externalLink is the error of the first link to another file.
func (f *File) externalLink(l *meta.Link) error {
	ext := filepath.Ext(f.path)
	return fmt.Errorf("a link to %s in the file %s, which is not followed: %w; give that file as the source, or copy all "+
		"into one file: %s", l.Target, l.File, meta.ErrUnsupported, shell.Command("h5copy -f ext -i", f.path)+
		shell.Command(" -o", strings.TrimSuffix(f.path, ext)+"-all"+ext)+" -s / -d /all")
}
