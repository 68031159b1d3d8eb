package array

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// text is the form of NumPy's texts, which end before the zeros at their end.
type text struct {
	size      int  // bytes of a text
	wide      bool // UTF-32, and not bytes
	bigEndian bool // of UTF-32
	several   bool // a record is a list of texts
}

// column returns the column of the texts whose bytes are the values of c; c itself if t is nil.
func (t *text) column(c Column) Column {
	if t == nil {
		return c
	}
	f := source.ContentField(c.Field.Name, tensor.Text)
	f.Origin = c.Field.Origin
	c.Field, c.Rows = f, nil
	if at := c.At; at != nil {
		c.At = func(i int64, buf []byte) ([]byte, error) {
			raw, err := at(i, nil)
			if err != nil {
				return buf, err
			}
			return t.append(buf, raw)
		}
	}
	open := c.Open
	c.Open = func() (Cursor, error) {
		raw, err := open()
		return &textCursor{raw, t}, err
	}
	return c
}

type textCursor struct {
	Cursor
	text *text
}

func (c *textCursor) Next() ([]byte, error) {
	raw, err := c.Cursor.Next()
	if err != nil {
		return nil, err
	}
	return c.text.append(nil, raw)
}

// append appends the text of a record, or the JSON array of its texts.
func (t *text) append(buf, raw []byte) (_ []byte, err error) {
	if !t.several {
		return t.one(buf, raw)
	}
	list := make([][]byte, 0, len(raw)/t.size)
	for ; len(raw) > 0; raw = raw[t.size:] {
		one, err := t.one(nil, raw[:t.size])
		if err != nil {
			return buf, err
		}
		list = append(list, one)
	}
	return AppendTexts(buf, list)
}

// one appends a text as UTF-8, or its bytes as they are.
func (t *text) one(buf, raw []byte) ([]byte, error) {
	if !t.wide {
		return append(buf, bytes.TrimRight(raw, "\x00")...), nil
	}
	from, end := len(buf), len(buf)
	order := binary.ByteOrder(binary.LittleEndian)
	if t.bigEndian {
		order = binary.BigEndian
	}
	for ; len(raw) > 0; raw = raw[4:] {
		x := order.Uint32(raw)
		if x > utf8.MaxRune || !utf8.ValidRune(rune(x)) {
			return buf[:from], source.ValueError("%#x is no character", x)
		}
		if buf = utf8.AppendRune(buf, rune(x)); x != 0 {
			end = len(buf)
		}
	}
	return buf[:end], nil
}

// AppendTexts appends the JSON array of texts, which is how lists of texts are stored from all sources. JSON is UTF-8,
// so other bytes are an error: they would be replaced.
func AppendTexts(buf []byte, texts [][]byte) ([]byte, error) {
	list := make([]string, len(texts))
	for i, text := range texts {
		if !utf8.Valid(text) {
			return buf, source.ValueError("text %d of a record is no UTF-8: %.20q", i, text)
		}
		list[i] = string(text)
	}
	b, err := json.Marshal(list)
	return append(buf, b...), err
}
