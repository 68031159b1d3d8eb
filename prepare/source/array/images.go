package array

import (
	"bytes"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// lookedAt is how many values of a column are looked at for one that is not empty.
const lookedAt = 8

// FindImages makes columns of encoded images those whose values are bytes that begin as files of images do: lists of
// uint8, texts, and rows of uint8 that zeros fill up behind the file, as robots write them.
func FindImages(columns []Column) {
	for i, c := range columns {
		f := c.Field
		padded := !f.Ragged && f.DType == tensor.Uint8 && len(f.Shape) == 1 && len(f.Classes) == 0
		bytes := f.Ragged && f.DType == tensor.Uint8 && len(f.Shape) == 0 && (f.Content == "" || f.Content == tensor.Text)
		if (padded || bytes) && c.beginsAsImage() {
			columns[i] = c.images(padded)
		}
	}
}

// beginsAsImage reports whether the first value that is not empty begins as an image file.
func (c Column) beginsAsImage() bool {
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
			return c.Field.Ragged && imagefile.Sniff(value) != "" || layout.IsPhoto(value)
		}
	}
	return false
}

// IsPhotos reports whether the rows of bytes of a column are image files that zeros fill up.
func (c Column) IsPhotos() bool { return !c.Field.Ragged && c.beginsAsImage() }

// images returns the column with the content of images.
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

// trimmed is a cursor over values without the zeros at their ends.
type trimmed struct{ Cursor }

// Next returns a value without the NULs at its end: NumPy pads bytes of dtype S to the longest, and drops NULs, too.
func (t trimmed) Next() ([]byte, error) {
	value, err := t.Cursor.Next()
	return bytes.TrimRight(value, "\x00"), err
}
