package hdf5

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/prepare/source/array"
)

// unfollowed returns the links that lead to nothing that is read: missed may hold records, in another file or as an
// object of an unknown kind; bad leads to nothing in this file.
func (f *File) unfollowed() (bad, missed array.Rejections) {
	for l := range f.meta.Walk() {
		switch {
		case l.Err != nil:
			missed = append(missed, array.Rejection{Name: l.Path, Err: l.Err})
		case l.Kind == meta.External:
			missed = append(missed, array.Rejection{Name: l.Path, Err: fmt.Errorf(
				"a link to %s in the file %s, which is not followed: %w; give that file as the source, or copy all into one "+
					"file: h5copy -f ext -i OLD.h5 -o NEW.h5 -s / -d /all",
				l.Target, l.File, meta.ErrUnsupported)})
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
