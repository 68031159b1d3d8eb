package array

import (
	"errors"
	"io"
	"math"
	"slices"
	"sync"
)

// All appends all values to buf, concatenated.
func (c Column) All(buf []byte) (_ []byte, err error) {
	// One read instead of one for each value; larger arrays are read value by value, as the size is a claim of the
	// file.
	if size := int64(c.Field.RecordBytes()); c.Rows != nil && size*c.Count < math.MaxInt32 {
		from := len(buf)
		buf = slices.Grow(buf, int(size*c.Count))[:from+int(size*c.Count)]
		return buf, c.Rows(0, c.Count, buf[from:])
	}
	err = c.Each(func(value []byte) error {
		buf = append(buf, value...)
		return nil
	})
	return buf, err
}

// Each calls f with all values of a column, one after the other, until f returns an error.
func (c Column) Each(f func(value []byte) error) (err error) {
	cursor, err := c.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cursor.Close()) }()
	for range c.Count {
		value, err := cursor.Next()
		if err != nil {
			return CutShort(err)
		}
		if err := f(value); err != nil {
			return err
		}
	}
	return nil
}

// Held returns a column with random access for a column that can only be read in order: the first use reads all
// values, and they stay in memory.
func (c Column) Held() Column {
	each := c.Each // of the column as it is now
	read := sync.OnceValues(func() (values [][]byte, err error) {
		err = each(func(value []byte) error {
			values = append(values, value)
			return nil
		})
		return values, err
	})
	c.At = func(i int64, buf []byte) ([]byte, error) {
		values, err := read()
		if err != nil {
			return buf, err
		}
		return append(buf, values[i]...), nil
	}
	c.Open = func() (Cursor, error) { return CursorAt(c.At, c.Count), nil }
	return c
}

// CursorAt returns a cursor over count values that reads each by a function like Column.At.
func CursorAt(at func(i int64, buf []byte) ([]byte, error), count int64) Cursor {
	return &cursorAt{at: at, count: count}
}

type cursorAt struct {
	at       func(i int64, buf []byte) ([]byte, error)
	i, count int64
}

func (c *cursorAt) Next() ([]byte, error) {
	if c.i == c.count {
		return nil, io.EOF
	}
	c.i++
	return c.at(c.i-1, nil)
}

func (c *cursorAt) Close() error { return nil }
