package array

import (
	"bytes"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// lookedAt is the number of values in which FindImages looks for a value that is not empty.
const lookedAt = 8

// FindImages gives columns the content of encoded images if their values are bytes that begin like image files:
// lists of uint8, texts, and rows of uint8 padded with zeros, as recordings of robots store them. Values that are
// several such rows become any number of images in a record.
func FindImages(columns []Column) {
	for i, c := range columns {
		f := c.Field
		// Classes mean that the bytes are numbers, whatever they look like.
		padded := !f.Ragged && f.DType == tensor.Uint8 && layout.MayBeFiles(f.Shape) && len(f.Classes) == 0
		bytes := f.Ragged && f.DType == tensor.Uint8 && len(f.Shape) == 0 && (f.Content == "" || f.Content == tensor.Text)
		switch {
		case !padded && !bytes || !c.beginsAsImage():
		case len(f.Shape) == 2:
			columns[i] = c.severalPadded()
		default:
			columns[i] = c.images(padded)
		}
	}
}

// beginsAsImage reports whether the first value that is not empty begins like an image file. Padded rows must be a
// photo (layout.IsPhoto), as rows of numbers can begin with any bytes.
func (c Column) beginsAsImage() bool {
	return c.first(func(value []byte) bool {
		return c.Field.Ragged && imagefile.Sniff(value) != "" || layout.IsPhoto(value)
	})
}

// first calls is with the first of a few values that is not empty, and returns its result; false if all are empty
// or cannot be read.
func (c Column) first(is func(value []byte) bool) bool {
	cursor, err := c.Open()
	if err != nil {
		return false // it is reported where the values are needed
	}
	defer cursor.Close()
	for range min(c.Count, lookedAt) {
		value, err := cursor.Next()
		if err != nil {
			return false
		}
		if len(value) > 0 {
			return is(value)
		}
	}
	return false
}

// IsPhotos reports whether the values are rows of bytes with image files, which may be padded with zeros.
func (c Column) IsPhotos() bool { return c.beginsAsImage() }

// HasImages reports whether the first value of content [tensor.Images] that is not empty begins with an image file.
func (c Column) HasImages() bool {
	return c.first(func(record []byte) bool {
		file, _, err := tensor.CutImage(record)
		return err == nil && imagefile.Sniff(file) != ""
	})
}

// Files makes a value of content [tensor.Images] from rows of bytes, one file in each.
type Files struct {
	Record []byte // files are appended to it
	rows   int
	empty  bool // the last row was empty
}

// Add adds a row. Empty rows at the end mean that the record has fewer images than rows. An empty row before an
// image is an error, as the images after it would move to other positions.
func (f *Files) Add(row []byte) error {
	if f.empty && len(row) > 0 {
		return source.ValueError("image %d of the record is empty, and image %d is not", f.rows-1, f.rows)
	}
	f.empty, f.rows = len(row) == 0, f.rows+1
	if !f.empty {
		f.Record = tensor.AppendImage(f.Record, row)
	}
	return nil
}

// AddPadded adds a row, without the zeros at its end that pad the file.
func (f *Files) AddPadded(row []byte) error { return f.Add(bytes.TrimRight(row, "\x00")) }

// severalPadded returns a column of values of several padded rows as a column of any number of images.
func (c Column) severalPadded() Column {
	rows, size := c.Field.Shape[0], c.Field.Shape[1]
	record := func(buf, value []byte) ([]byte, error) {
		files := Files{Record: buf}
		for i := range rows {
			if err := files.AddPadded(value[i*size : (i+1)*size]); err != nil {
				return buf, err
			}
		}
		return files.Record, nil
	}
	return c.mapped(source.ContentField(c.Field.Name, tensor.Images), record)
}

// mapped returns a column of field whose values f appends to buf, made from the values of c. The field keeps the
// origin of c.
func (c Column) mapped(field source.Field, f func(buf, value []byte) ([]byte, error)) Column {
	inner := c
	field.Origin = c.Field.Origin
	c.Field, c.Rows = field, nil
	c.Open = func() (Cursor, error) {
		cursor, err := inner.Open()
		return mappedCursor{cursor, f}, err
	}
	if inner.At != nil {
		c.At = func(i int64, buf []byte) ([]byte, error) {
			value, err := inner.At(i, nil)
			if err != nil {
				return buf, err
			}
			return f(buf, value)
		}
	}
	return c
}

// mappedCursor is a cursor over values that f makes from the values of another cursor.
type mappedCursor struct {
	Cursor
	f func(buf, value []byte) ([]byte, error)
}

// Next returns the next value after the conversion by f, in new memory.
func (c mappedCursor) Next() ([]byte, error) {
	value, err := c.Cursor.Next()
	if err != nil {
		return nil, err
	}
	return c.f(nil, value)
}

// images returns the column with the content of images. Padding is cut off the values, whose size then varies, so
// Rows is removed.
func (c Column) images(padded bool) Column {
	name, origin := c.Field.Name, c.Field.Origin
	c.Field = source.ContentField(name, tensor.Image)
	c.Field.Origin = origin
	if !padded {
		return c
	}
	inner := c
	c.Rows = nil
	c.Open = func() (Cursor, error) {
		cursor, err := inner.Open()
		return trimmed{cursor}, err
	}
	if inner.At != nil {
		c.At = func(i int64, buf []byte) ([]byte, error) {
			from := len(buf)
			buf, err := inner.At(i, buf)
			return append(buf[:from], bytes.TrimRight(buf[from:], "\x00")...), err
		}
	}
	return c
}

// trimmed is a cursor that cuts zeros off the ends of values.
type trimmed struct{ Cursor }

// Next returns the next value without the zeros at its end: NumPy pads values of dtype S to the longest value, and
// drops zeros at the end on reading, too.
func (t trimmed) Next() ([]byte, error) {
	value, err := t.Cursor.Next()
	return bytes.TrimRight(value, "\x00"), err
}
