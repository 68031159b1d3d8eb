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
	if size := int64(c.Field.RecordBytes()); c.Rows != nil && size*c.Count < math.MaxInt32 {
		from := len(buf)
		buf = slices.Grow(buf, int(size*c.Count))[:from+int(size*c.Count)]
		return buf, c.Rows(0, c.Count, buf[from:])
	}
	err = c.Each(func(value []byte) { buf = append(buf, value...) })
	return buf, err
}

// Each calls f with each value in order.
func (c Column) Each(f func(value []byte)) (err error) {
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
		f(value)
	}
	return nil
}

// Held returns a column with random access for a column that can only be read in order: the first use reads all
// values, and they stay in memory.
func (c Column) Held() Column {
	each := c.Each // of the column as it is now
	read := sync.OnceValues(func() (values [][]byte, err error) {
		err = each(func(value []byte) { values = append(values, value) })
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
