//go:build cgo && !nolibhdf5

package hdf5

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"path"
	"unsafe"

	"gonum.org/v1/hdf5"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/store/write"
)

// containers are the implementations of HDF5 files in this build. The first container writes new files.
var containers = []container{gonum{}, encoded{}}

// gonum is the container of libhdf5, through gonum.org/v1/hdf5.
type gonum struct{}

func (gonum) name() string { return "libhdf5" }

// create makes the objects in one session and reserves the bytes of large datasets in a second
// session, in which every allocation begins at a page. In a single session the headers of the
// objects, too, would begin at pages.
func (g gonum) create(path string, objects []encode.Object) error {
	err := session(path, creating, smallAlign, func(f file) error {
		return createAll(f, objects, map[string]bool{})
	})
	if err != nil {
		return err
	}
	err = session(path, changing, pageAlign, func(f file) error {
		for i := range objects {
			if o := &objects[i]; late(o) && o.Dims[0] > 0 && o.Chunked == nil {
				if err := allocate(f, o); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.locate(path, objects)
}

// createAll creates objects and the groups above them that are not known yet.
func createAll(f file, objects []encode.Object, known map[string]bool) error {
	for i := range objects {
		if err := createGroups(f, path.Dir(objects[i].Path), known); err != nil {
			return err
		}
		if err := create(f, &objects[i]); err != nil {
			return err
		}
	}
	return nil
}

func createGroups(f file, group string, known map[string]bool) error {
	if group == "/" || known[group] {
		return nil
	}
	if err := createGroups(f, path.Dir(group), known); err != nil {
		return err
	}
	known[group] = true
	return createGroup(f, group)
}

// locate asks libhdf5 where it put each array, so that rows can be written past it, from many goroutines. The alignment
// was asked for when the file was made, and libhdf5 may ignore it, so it is checked.
func (gonum) locate(path string, objects []encode.Object) error {
	return session(path, reading, pageAlign, func(f file) error {
		for i := range objects {
			o := &objects[i]
			if n, err := o.Bytes(); err != nil || n == 0 || o.Chunked != nil {
				if err != nil {
					return err
				}
				continue
			}
			at, err := offset(f, o.Path)
			if err != nil {
				return err
			}
			if at%o.Align != 0 {
				return fmt.Errorf("%s: libhdf5 put it at %#x, which is no multiple of %d", o.Path, at, o.Align)
			}
			o.At = at
		}
		return nil
	})
}

func (gonum) chunks(path string, o *encode.Object) (write.ChunkWriter, error) {
	c := &chunkSession{path: o.Path}
	err := do(func() (err error) {
		if c.file, err = openFile(path, changing, smallAlign); err != nil {
			return err
		}
		if c.dataset, err = c.file.h.OpenDataset(o.Path); err != nil {
			return errors.Join(gonumFailed("open "+o.Path), c.file.close())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// chunkSession is a file and a dataset that are open for chunks.
type chunkSession struct {
	file    file
	dataset *hdf5.Dataset
	path    string
}

// Write writes a chunk that was compressed here, by H5Dwrite_chunk, which stores it as it is: libhdf5 would run its
// filters one chunk at a time under its global lock.
func (c *chunkSession) Write(row int64, chunk []byte, mask uint32) error {
	return do(func() error {
		var e C.h5x_error
		at := unsafe.Pointer(unsafe.SliceData(chunk))
		if C.h5x_write_chunk(C.hid_t(c.dataset.ID()), C.hsize_t(row), C.uint32_t(mask), C.size_t(len(chunk)), at, &e) < 0 {
			return failed("write "+c.path, &e)
		}
		return nil
	})
}

func (c *chunkSession) Close() error {
	return do(func() error {
		err := c.dataset.Close()
		if err != nil {
			err = gonumFailed("close " + c.path)
		}
		return errors.Join(err, c.file.close())
	})
}

// complete writes all attributes, flushes, and marks the file complete after that, so that the mark is never on disk
// before the data that it vouches for.
func (gonum) complete(path string, objects, more []encode.Object, root []encode.Attribute) error {
	return session(path, changing, smallAlign, func(f file) error {
		if err := createAll(f, more, map[string]bool{metadataGroup: true}); err != nil {
			return err
		}
		for i := range objects {
			if err := onDataset(f, &objects[i]); err != nil {
				return err
			}
		}
		if err := onRoot(f, root); err != nil {
			return err
		}
		if err := f.flush(); err != nil {
			return err
		}
		return onRoot(f, []encode.Attribute{completeAttribute()})
	})
}

func onDataset(f file, o *encode.Object) error {
	if len(o.Attributes) == 0 {
		return nil
	}
	h, err := f.h.OpenDataset(o.Path)
	if err != nil {
		return gonumFailed("open " + o.Path)
	}
	defer h.Close()
	return writeAttributes(h, o.Attributes)
}

func onRoot(f file, list []encode.Attribute) error {
	root, err := f.h.OpenGroup("/")
	if err != nil {
		return gonumFailed("open /")
	}
	defer root.Close()
	return writeAttributes(root, list)
}
