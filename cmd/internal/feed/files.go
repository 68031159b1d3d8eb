package feed

import (
	"os"

	"github.com/penstock/penstock/internal/sys/mmap"
)

// passer is a [transport] that can pass descriptors to the client at any time.
type passer interface {
	// pass sends a message, and the descriptor of f with it.
	pass(message []byte, f *os.File) error
}

// files are the files of datasets that fields of batches are views of. The client maps them itself, so such a field is
// copied nowhere. One goroutine uses them.
type files struct {
	pass   func(number int, path string, f *os.File) error
	number int          // of the file that was passed last
	fields []passedFile // by field
}

// passedFile is the file that was passed last for a field.
type passedFile struct {
	number int // 0 if none was passed since the start
	place  mmap.Place
}

func newFiles(fields int, pass func(number int, path string, f *os.File) error) *files {
	return &files{pass: pass, fields: make([]passedFile, fields)}
}

// forget makes each file be passed again when it is next needed: the client may have missed what was passed before a
// start.
func (fs *files) forget() { clear(fs.fields) }

// place returns where a field is in a file, which it passes if the field was not in the same one before. It returns
// false if the bytes are in no file, or in one that is not at its path any more.
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
