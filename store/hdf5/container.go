package hdf5

import (
	"fmt"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store/write"
)

// Places of penstock's own metadata in the file.
const (
	metadataGroup = "/penstock"
	manifestPath  = layout.HDF5Manifest
)

// Alignment of objects in the file. Payloads start at pages, so that they can be mapped; other objects at the alignment
// of their type.
const (
	pageAlign  = 4096
	smallAlign = 8
)

// container writes everything of an HDF5 file except the elements of contiguous datasets, which the caller writes at
// the places that the container assigns. A container does not keep the file open between calls, so the caller's writes
// never meet its caches.
type container interface {
	// create makes the file with the given objects, which have no elements yet, and sets At of each contiguous object
	// that has elements.
	create(path string, objects []encode.Object) error

	// locate sets At of the objects of a file that create made with the same objects. A resumed build uses it.
	locate(path string, objects []encode.Object) error

	// chunks opens a dataset to write its chunks. Only one dataset is open at a time, and no other method is called
	// until it is closed.
	chunks(path string, o *encode.Object) (write.ChunkWriter, error)

	// complete adds attributes to the objects, adds more objects, with their Data, and marks the file complete after
	// everything else is in it.
	complete(path string, objects, more []encode.Object, root []encode.Attribute) error

	// name returns the name of the writer of the file, and the version of its layout. Only the container that began a
	// build continues it, as each lays out files in its own way.
	name() string
}

// writtenBy is the option of a build that records the name of its container.
const writtenBy = "writer of HDF5"

// continuing returns the container that continues the build in a stage: the container that began the build, or the
// first of containers for a new build.
func continuing(stage *write.Stage, opts Options) (container, error) {
	known := opts.containers()
	name := ""
	if opts.Journal != nil && opts.Journal.Resume {
		name = write.BegunWith(stage.Folder, writtenBy)
	}
	if name == "" {
		return known[0], nil
	}
	for _, c := range known {
		if c.name() == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("cannot resume: %s began the file, and this program has %s only; resume it with a program "+
		"that has both (one that is built with cgo), or start over without resuming", name, known[0].name())
}

// completeAttribute returns the attribute that marks a complete file.
func completeAttribute() encode.Attribute { return encode.Integer("complete", 1) }

// payload describes the HDF5 dataset that holds the rows of a column. checksums describes the dataset that holds the
// checksums of the column's blocks.
func payload(c layout.Column) encode.Object {
	dims := []int64{c.Rows}
	for _, d := range c.Spec.Shape {
		dims = append(dims, int64(d))
	}
	return encode.Object{Path: c.Path(), Element: encode.Element{DType: c.Spec.DType}, Dims: dims, Align: pageAlign}
}
