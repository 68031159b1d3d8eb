package arrow

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/rows"
	"github.com/penstock/penstock/store"
)

// A stream is a sequence of messages (arrow.apache.org/docs/format/Columnar.html): the schema first, then record
// batches, each after the dictionaries that it needs. A message is
//
//	uint32 0xffffffff (absent before Arrow 0.15), int32 size of the metadata, the metadata (Message.fbs), the body
//
// A file is "ARROW1", padded to 8 bytes, a stream, and a footer with the schema and the places of all other
// messages:
//
//	the footer (File.fbs), int32 size of the footer, "ARROW1"
//
// For a file, only the footer is read, as pyarrow does: polars writes no length before the schema of the stream in
// it.
const fileMagic = "ARROW1"

// Numbers of the union MessageHeader in Message.fbs.
const headerSchema, headerDictionary, headerBatch = 1, 2, 3

// maxMetadata limits the metadata of a message, in bytes.
const maxMetadata = 64 << 20

// file is an open file or stream. It has the places of all batches, and no values.
type file struct {
	file    vfs.File
	size    int64
	schema  *schema
	leaves  []*leaf
	batches []*batch // in the order of their rows
	rows    int64

	// By dictionary id: the values at this point of the stream. A later message may replace them, so each batch keeps
	// the map that it found.
	dictionaries map[int64]*dictionary
}

// open reads the metadata of all messages, and no values.
func open(ctx context.Context, root *vfs.Root, path string) (rows.File, error) {
	r, err := source.OpenUntil(ctx, root, path)
	if err != nil {
		return nil, err
	}
	f := &file{file: r, dictionaries: make(map[int64]*dictionary)}
	if err := f.read(); err != nil {
		r.Close()
		return nil, err
	}
	return f, nil
}

// read reads the footer of a file, or the messages of a stream up to its end to find the batches.
func (f *file) read() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	isFile, err := f.ends()
	if err == nil && isFile {
		err = f.footer()
	} else if err == nil {
		err = f.stream()
	}
	if err != nil {
		return err
	}
	if f.schema == nil {
		return errors.New("is no Arrow stream: it has no schema")
	}
	f.leaves = f.schema.leaves()
	return nil
}

// stream reads the metadata of all messages of a stream.
func (f *file) stream() error {
	for at := int64(0); ; {
		next, err := f.message(at)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("message at byte %d: %w", at, err)
		}
		at = next
	}
}

// ends reports whether this is an Arrow file, with a footer, and not an Arrow stream. A file that begins with the
// magic number of a file and does not end with it was cut off, or its writer stopped.
func (f *file) ends() (isFile bool, err error) {
	var head, tail [8]byte
	// A file has two magic numbers and a length at least; a stream begins with two lengths and an offset.
	if f.size < 16 {
		return false, errors.New("is not an Arrow file: it is too short")
	}
	if err := source.ReadAt(f.file, head[:], 0); err != nil {
		return false, err
	}
	if bytes.HasPrefix(head[:], []byte("FEA1")) {
		return false, errors.New("is a Feather file of version 1; rewrite it: pandas.read_feather(FILE).to_feather(OTHER)")
	}
	if !bytes.HasPrefix(head[:], []byte(fileMagic)) {
		return false, nil
	}
	if err := source.ReadAt(f.file, tail[:], f.size-8); err != nil {
		return false, err
	}
	if !bytes.HasSuffix(tail[:], []byte(fileMagic)) {
		return false, errors.New("is cut short, or was not written to its end: an Arrow file ends with " + fileMagic)
	}
	return true, nil
}

// footer reads the footer, and then the metadata of the messages that it lists: dictionaries before batches, as
// batches refer to them.
func (f *file) footer() error {
	const blockBytes = 24 // a place of a message: int64, int32 size of its metadata, int64 size of its body
	var length [4]byte
	end := f.size - int64(len(fileMagic)+len(length))
	if err := source.ReadAt(f.file, length[:], end); err != nil {
		return err
	}
	size := int64(int32(binary.LittleEndian.Uint32(length[:])))
	if size < 8 || size > maxMetadata || size > end-8 {
		return fmt.Errorf("a footer of %d bytes: %w", size, store.ErrCorrupt)
	}
	b := make([]byte, size)
	if err := source.ReadAt(f.file, b, end-size); err != nil {
		return err
	}
	meta := &flatbuffer{b: b}
	t := meta.root()
	s := t.table(1)
	if s == nil || meta.bad {
		return fmt.Errorf("a footer without a schema: %w", store.ErrCorrupt)
	}
	var err error
	if f.schema, err = newSchema(s); err != nil {
		return err
	}
	const dictionaries, batches = 2, 3 // fields of the footer
	// Messages are visited in the order of the footer: newBatch takes the dictionaries that are known then.
	for _, field := range []int{dictionaries, batches} {
		at, count := t.vector(field, blockBytes)
		for i := range count {
			place := meta.int64(at + i*blockBytes)
			// Messages are between the padded magic number and the footer.
			if place < 8 || place >= end-size {
				return fmt.Errorf("message at byte %d: %w", place, store.ErrCorrupt)
			}
			if _, err := f.message(place); err != nil && err != io.EOF {
				return fmt.Errorf("message at byte %d: %w", place, err)
			}
		}
	}
	if meta.bad {
		return fmt.Errorf("a footer that leads out of itself: %w", store.ErrCorrupt)
	}
	return nil
}

// message reads the metadata of the message at a position and returns the position of the next; io.EOF is the end
// of the stream.
func (f *file) message(at int64) (int64, error) {
	if at == f.size { // a stream may end so, too
		return 0, io.EOF
	}
	head := make([]byte, min(8, f.size-at))
	if err := source.ReadAt(f.file, head, at); err != nil {
		return 0, err
	}
	if len(head) < 4 {
		return 0, errShort
	}
	size := int64(binary.LittleEndian.Uint32(head))
	at += 4
	if size == 0xffffffff {
		if len(head) < 8 {
			return 0, errShort
		}
		size = int64(binary.LittleEndian.Uint32(head[4:]))
		at += 4
	}
	switch {
	case size == 0:
		return 0, io.EOF
	case size > f.size-at:
		return 0, errShort
	case size > maxMetadata:
		return 0, fmt.Errorf("metadata of %d bytes: %w", size, store.ErrCorrupt)
	}
	b := make([]byte, size)
	if err := source.ReadAt(f.file, b, at); err != nil {
		return 0, err
	}
	meta := &flatbuffer{b: b}
	m := meta.root()
	body, length := at+size, m.number(3, 8, 0)
	if length < 0 || length > f.size-body {
		return 0, errShort
	}
	err := f.header(m.number(1, 1, 0), m.table(2), span{body, length})
	if meta.bad {
		err = fmt.Errorf("its metadata lead out of it: %w", store.ErrCorrupt)
	}
	return body + length, err
}

var errShort = errors.New("the file is cut short")

// header adds a message to the file. body is the place of its body.
func (f *file) header(typ int64, t *table, body span) (err error) {
	switch {
	case t == nil:
		return store.ErrCorrupt
	case typ == headerSchema && f.schema == nil:
		f.schema, err = newSchema(t)
		return err
	// Nothing else can be understood before the schema.
	case f.schema == nil:
		return errors.New("is no Arrow stream: it does not begin with a schema")
	case typ == headerBatch:
		b, err := newBatch(f, f.schema.nodes, t, body)
		if err != nil {
			return err
		}
		// The sum of all rows must not overflow, whatever the batches claim.
		if b.rows > 1<<62-f.rows {
			return store.ErrCorrupt
		}
		b.dictionaries = f.dictionaries
		f.rows += b.rows
		f.batches = append(f.batches, b)
		return nil
	case typ == headerDictionary:
		return f.dictionary(t, body)
	}
	return fmt.Errorf("a message of type %d, which no table has", typ)
}

// dictionary adds a DictionaryBatch. It replaces the values of the dictionary, or with isDelta appends to them.
func (f *file) dictionary(t *table, body span) error {
	id, data := t.number(0, 8, 0), t.table(1)
	n := find(f.schema.nodes, id)
	if n == nil || data == nil {
		return fmt.Errorf("dictionary %d, which no column has: %w", id, store.ErrCorrupt)
	}
	// The dictionary's own values have the type of the column, but no dictionary.
	values := *n
	values.dictionary, values.index = -1, nil
	b, err := newBatch(f, []*node{&values}, data, body)
	if err != nil {
		return err
	}
	d := new(dictionary)
	if old := f.dictionaries[id]; t.number(2, 1, 0) != 0 && old != nil {
		d.parts = append(d.parts, old.parts...)
	}
	d.parts = append(d.parts, b)
	f.dictionaries = maps.Clone(f.dictionaries) // batches before have the old ones
	f.dictionaries[id] = d
	return nil
}

// find returns the node, at any depth, that has a dictionary; nil if no node has it.
func find(nodes []*node, id int64) *node {
	for _, n := range nodes {
		if n.dictionary == id {
			return n
		}
		if c := find(n.children, id); c != nil {
			return c
		}
	}
	return nil
}

// Columns implements rows.File.
func (f *file) Columns() []rows.Column {
	list := make([]rows.Column, 0, len(f.leaves))
	for _, l := range f.leaves {
		list = append(list, l.Column)
	}
	return list
}

// Count implements rows.File.
func (f *file) Count() int64 { return f.rows }

// Close implements rows.File.
func (f *file) Close() error { return f.file.Close() }

// Rows implements rows.File. It skips whole batches before row first by their counts, and loads one batch at a
// time; a loaded batch lives as long as its rows are used.
func (f *file) Rows(first int64) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		for _, b := range f.batches {
			if first >= b.rows {
				first -= b.rows
				continue
			}
			loaded := b.load()
			if err := loaded.plausible(); err != nil {
				yield(nil, err)
				return
			}
			for i := first; i < b.rows; i++ {
				if !yield(row{loaded, i}, nil) {
					return
				}
			}
			first = 0
		}
	}
}
