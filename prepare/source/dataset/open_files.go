package dataset

import (
	"errors"
	"sync"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// openFiles reads files by path and keeps up to mostOpen of them open until Close, as random access returns to each
// file again and again. Any number of goroutines may use it.
type openFiles struct {
	root  *vfs.Root
	mu    sync.RWMutex
	files map[string]vfs.File
}

// mostOpen is the number of files that stay open. Further files are opened for each read, so that a dataset of many
// shards does not use up the descriptors of the process.
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
	// If mostOpen files are open, or another goroutine was faster, the file is for this read only.
	if kept := o.keep(path, f); !kept {
		defer f.Close()
	}
	return source.ReadAt(f, b, offset)
}

// get returns an open file, nil if the file is not open.
func (o *openFiles) get(path string) vfs.File {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.files[path]
}

// keep takes ownership of a file and returns true, unless mostOpen files are open or another goroutine has opened
// it first.
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

// Close closes all files. The caller makes sure that no read is under way.
func (o *openFiles) Close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.files {
		err = errors.Join(err, f.Close())
	}
	o.files = nil
	return err
}
