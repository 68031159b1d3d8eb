package feed

import (
	"os"

	"github.com/penstock/penstock/internal/sys/mmap"
)

// passer is a [transport] that can pass descriptors to the client at any time, not only with the
// welcome.
type passer interface {
	// pass sends a message together with the descriptor of f.
	pass(message []byte, f *os.File) error
}

// files are the files of datasets of which fields of batches are views. The client maps these files
// itself, so such a field is not copied anywhere. One goroutine uses files.
type files struct {
	pass   func(number int, path string, f *os.File) error
	number int          // of the last file that was passed
	fields []passedFile // by field
}

// passedFile is the file that was passed last for a field.
type passedFile struct {
	number int // 0 if none was passed since the start
	place  mmap.Place
}

// newFiles returns files for a number of fields. pass sends a file under a number.
func newFiles(fields int, pass func(number int, path string, f *os.File) error) *files {
	return &files{pass: pass, fields: make([]passedFile, fields)}
}

// forget makes each file be passed again when it is next needed. It is called at a start, since the
// client may have missed what was passed before.
func (fs *files) forget() { clear(fs.fields) }

// place returns where in a file a field is, and passes the file unless it is the field's last one.
// It returns false if the bytes are not of a mapped file, or if another file is at that path by
// now; then the field is copied.
func (fs *files) place(field int, b []byte) (place, bool, error) {
	at, is := mmap.PlaceOf(b)
	if !is {
		return place{}, false, nil
	}
	last := &fs.fields[field]
	if last.number == 0 || !at.SameFile(last.place) {
		f, err := at.Open()
		if err != nil {
			return place{}, false, nil // then it is copied
		}
		defer f.Close()
		fs.number++
		if err := fs.pass(fs.number, at.Path(), f); err != nil {
			return place{}, false, err
		}
		*last = passedFile{fs.number, at}
	}
	return place{At: at.Offset, File: last.number}, true, nil
}
