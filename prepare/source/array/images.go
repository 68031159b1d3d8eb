package array

import (
	"bytes"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// lookedAt is the number of values in which FindImages looks for one that is not empty.
const lookedAt = 8

// FindImages gives columns the content of encoded images if their values are bytes that begin like image files:
// lists of uint8, texts, and rows of uint8 padded with zeros, as recordings of robots store them.
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

// beginsAsImage reports whether the first value that is not empty begins like an image file. Padded rows must be a
// photo (layout.IsPhoto), as rows of numbers can begin with any bytes.
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

// IsPhotos reports whether the values are rows of bytes with image files, padded with zeros.
func (c Column) IsPhotos() bool { return !c.Field.Ragged && c.beginsAsImage() }

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
