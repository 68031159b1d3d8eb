package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock/penstock/internal/hdf5/encode"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store/write"
)

const writeBuffer = 1 << 20

// column writes the bytes of one dataset, from the first byte on, at their place in the file.
type column struct {
	file  *os.File
	start int64 // offset of the dataset's bytes in the file
	room  int64 // bytes that the dataset has
	done  int64 // bytes that are written
	buf   []byte
}

// append writes a large block immediately and buffers small blocks until the buffer is full.
func (c *column) append(b []byte) error {
	if int64(len(b)) > c.room-c.done-int64(len(c.buf)) {
		return errors.New("more bytes than the dataset has")
	}
	if len(c.buf)+len(b) > writeBuffer {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if len(b) >= writeBuffer {
		return c.write(b)
	}
	c.buf = append(c.buf, b...)
	return nil
}

func (c *column) flush() error {
	err := c.write(c.buf)
	c.buf = c.buf[:0]
	return err
}

func (c *column) write(b []byte) error {
	n, err := c.file.WriteAt(b, c.start+c.done)
	c.done += int64(n)
	return pathless(err)
}

// copyFrom copies everything that another column has written. It uses the system call that copies between files where
// the system has it.
func (c *column) copyFrom(from *column) error {
	if from.done > c.room {
		return errors.New("more bytes than the dataset has")
	}
	if _, err := c.file.Seek(c.start, io.SeekStart); err != nil {
		return pathless(err)
	}
	if _, err := from.file.Seek(from.start, io.SeekStart); err != nil {
		return pathless(err)
	}
	n, err := io.CopyN(c.file, from.file, from.done)
	c.done = n
	return pathless(err)
}

// pathless drops the path from an error: the path of the file under construction means nothing to the user.
func pathless(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}

// array writes the rows of one of the dataset's columns and the checksums of their blocks. Chunks go through pack, and
// contiguous rows through values.
type array struct {
	meta         layout.Column
	object       *encode.Object
	pack         *write.ChunkPipeline // compresses and writes the chunks; nil for a contiguous array
	stored       int64                // bytes of the chunks
	values, sums column               // a chunked array uses only sums
	blocks       write.BlockSums
	word         [4]byte // a checksum; a field, so that it is not allocated
}

func newArray(meta layout.Column, object *encode.Object) array {
	return array{meta: meta, object: object, blocks: write.NewBlockSums(meta.Spec.RecordBytes())}
}

// append adds rows, whose CRC32C is crc.
func (a *array) append(rows []byte, crc uint32) error {
	a.blocks.Add(rows, crc)
	if err := a.flushSums(); err != nil {
		return err
	}
	if a.pack != nil {
		return a.pack.Append(rows)
	}
	return a.values.append(rows)
}

// flushSums writes the checksums of blocks that are complete. They are a dataset of their own in the same file.
func (a *array) flushSums() error {
	for _, crc := range a.blocks.Done {
		binary.LittleEndian.PutUint32(a.word[:], crc)
		if err := a.sums.append(a.word[:]); err != nil {
			return err
		}
	}
	a.blocks.Done = a.blocks.Done[:0]
	return nil
}

// finish ends the last block and writes everything that is buffered.
func (a *array) finish() error {
	a.blocks.End()
	return errors.Join(a.flushSums(), a.values.flush(), a.sums.flush())
}
