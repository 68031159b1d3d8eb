package dataset

import (
	"errors"
	"sync"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// openFiles reads files by path and keeps them open until Close, up to a limit, as reading
// records in a random order comes back to each of them. It may be used by any goroutine.
type openFiles struct {
	root  *vfs.Root
	mu    sync.RWMutex
	files map[string]vfs.File
}

// mostOpen is how many files stay open; those beyond are opened for each read.
const mostOpen = 256

// readAt fills b with the bytes of a file from offset on.
func (o *openFiles) readAt(path string, b []byte, offset int64) error {
	if len(b) == 0 {
		return nil
	}
	if f := o.get(path); f != nil {
		return source.ReadAt(f, b, offset)
	}
	f, err := o.root.Open(path)
	if err != nil {
		return err
	}
	if kept := o.keep(path, f); !kept {
		defer f.Close()
	}
	return source.ReadAt(f, b, offset)
}

// get returns a file that is open, nil if it is not.
func (o *openFiles) get(path string) vfs.File {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.files[path]
}

// keep takes over a file, unless there are enough, or another goroutine was first.
func (o *openFiles) keep(path string, f vfs.File) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.files) == mostOpen || o.files[path] != nil {
		return false
	}
	if o.files == nil {
		o.files = make(map[string]vfs.File)
	}
	o.files[path] = f
	return true
}

// Close closes all files. Nothing is read at that time.
func (o *openFiles) Close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.files {
		err = errors.Join(err, f.Close())
	}
	o.files = nil
	return err
}
