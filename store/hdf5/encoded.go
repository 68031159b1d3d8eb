package hdf5

import (
	"errors"
	"os"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/store/write"
)

// encoded is the container of package encode, without C. It writes the objects of a complete file after all rows, and
// the head last.
type encoded struct{}

func (encoded) name() string { return "penstock 1" }

func (encoded) locate(_ string, objects []encode.Object) error {
	_, err := encode.Place(objects, encode.HeadSize)
	return err
}

// create makes a file of the full size without metadata. complete writes the metadata last: until then the file is no
// HDF5 file, and no reader can take it for one.
func (encoded) create(path string, objects []encode.Object) error {
	end, err := encode.Place(objects, encode.HeadSize)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return pathless(err)
	}
	return pathless(errors.Join(f.Truncate(end), f.Close()))
}

// chunks returns a writer that appends chunks to the file and records their places for the index.
func (encoded) chunks(path string, o *encode.Object) (write.ChunkWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, pathless(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, pathless(errors.Join(err, f.Close()))
	}
	return &chunkFile{f, info.Size(), o.Chunked}, nil
}

// chunkFile appends chunks to the file and records the chunks' places in the field to.
type chunkFile struct {
	file *os.File
	end  int64
	to   *encode.Chunked
}

func (c *chunkFile) Write(_ int64, chunk []byte, mask uint32) error {
	if _, err := c.file.Write(chunk); err != nil {
		return pathless(err)
	}
	c.to.Stored = append(c.to.Stored, encode.Stored{At: c.end, Size: int64(len(chunk)), Mask: mask})
	c.end += int64(len(chunk))
	return nil
}

func (c *chunkFile) Close() error { return pathless(c.file.Close()) }

// complete appends the metadata, syncs, and only then writes the superblock at the beginning of the file. A crash in
// between leaves a file that does not open; the other order could leave a file whose superblock leads to missing
// bytes.
func (encoded) complete(path string, objects, more []encode.Object, root []encode.Attribute) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return pathless(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return pathless(err)
	}
	all := append(append([]encode.Object(nil), objects...), more...)
	head, body, err := encode.File(info.Size(), all, append(root, completeAttribute()))
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(body, info.Size()); err != nil {
		return pathless(err)
	}
	if err := f.Sync(); err != nil { // a reader that finds the head must find everything that it refers to
		return pathless(err)
	}
	_, err = f.WriteAt(head, 0)
	return pathless(err)
}
