//go:build cgo

package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/penstock/penstock/store"
)

const writeBuffer = 1 << 20

// column writes the bytes of one dataset, from its first one on, at their place in the file.
type column struct {
	file  *os.File
	start int64 // offset of the dataset's bytes in the file
	room  int64 // how many they are
	done  int64 // how many of them are written
	buf   []byte
}

// append adds b, which is written at once if it is large, with its like if it is small.
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

// copyFrom takes over all that another column has written, by the system's own copy where
// there is one.
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

// pathless drops the name of the file under construction, which the user never sees.
func pathless(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}

// castagnoli is the polynomial of store.CRC32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fieldColumn writes the records of a field and the checksums of their blocks.
type fieldColumn struct {
	values, sums column
	per          int64  // records a block
	in           int64  // records in the open block
	crc          uint32 // of the open block
}

func newFieldColumn(f store.Field) fieldColumn {
	return fieldColumn{per: store.BlockRecords(f.RecordBytes())}
}

// append adds a record, whose CRC32C is crc.
func (c *fieldColumn) append(value []byte, crc uint32) error {
	if c.in > 0 {
		crc = crc32.Update(c.crc, castagnoli, value)
	}
	c.crc = crc
	c.in++
	if c.in == c.per {
		if err := c.endBlock(); err != nil {
			return err
		}
	}
	return c.values.append(value)
}

func (c *fieldColumn) endBlock() error {
	c.in = 0
	return c.sums.append(binary.LittleEndian.AppendUint32(nil, c.crc))
}

// finish ends the last block and writes what is buffered.
func (c *fieldColumn) finish() error {
	if c.in > 0 {
		if err := c.endBlock(); err != nil {
			return err
		}
	}
	return errors.Join(c.values.flush(), c.sums.flush())
}
