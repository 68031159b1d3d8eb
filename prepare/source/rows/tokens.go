package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/tensor"
)

// tokensColumn is the name of the only column.
const tokensColumn = "tokens"

// OpenTokens opens files of tokens for language models: pairs of .bin and .idx of Megatron, whose sequences are the
// records; files with the header of llm.c; and raw files. For the last two, --fields says how many tokens a record
// has.
func OpenTokens(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	names, err := source.FilesOf(root, path, "tokens")
	if err != nil {
		return nil, err
	}
	var given *column.Type
	for i, w := range selection {
		// The type is about the file and not about a conversion, so it is taken out of the selection.
		if w.Column == tokensColumn && w.Type != "" {
			t, _ := column.ParseType(w.Type) // ParseFields has checked it
			given = &t
			selection[i].Type = ""
		}
	}
	var files []string
	for _, n := range names { // the two of a pair are one
		if bin := strings.TrimSuffix(n, ".idx") + ".bin"; strings.HasSuffix(n, ".idx") {
			n = bin
		}
		if len(files) == 0 || files[len(files)-1] != n {
			files = append(files, n)
		}
	}
	return Open(ctx, root, path, files,
		Format{Kind: "tokens", Unit: "records", Open: func(ctx context.Context, root *vfs.Root, path string) (
			File, error) {
			return openTokens(ctx, root, path, given)
		}}, opts, selection)
}

// tokensFile is an open file of tokens.
type tokensFile struct {
	data   vfs.File
	column Column
	count  int64
	size   int64 // bytes of a token

	// The places of records: in the index, or without an index one after the other from begin on, length tokens
	// each.
	index         vfs.File
	lengths, at   int64 // positions of the lengths and of the offsets in the index
	begin, length int64
}

// openTokens opens a file. given is the type of --fields, nil if --fields has no type.
func openTokens(ctx context.Context, root *vfs.Root, path string, given *column.Type) (File, error) {
	data, err := source.OpenUntil(ctx, root, path)
	if err != nil {
		return nil, err
	}
	f := &tokensFile{data: data, column: Column{Name: tokensColumn}}
	if err := f.open(ctx, root, path, given); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open finds out what a file is: tokens of Megatron if there is an .idx of the same name, otherwise a raw file.
func (f *tokensFile) open(ctx context.Context, root *vfs.Root, path string, given *column.Type) error {
	info, err := f.data.Stat()
	if err != nil {
		return err
	}
	index := strings.TrimSuffix(path, ".bin") + ".idx"
	if index == path {
		return f.raw(info.Size(), given)
	}
	f.index, err = source.OpenUntil(ctx, root, index)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.index = nil
		return f.raw(info.Size(), given)
	case err != nil:
		return fmt.Errorf("its index: %w", source.WithoutPath(err))
	}
	return f.megatron(info.Size(), given)
}

// tokensTypes has the element types by their code in an index of Megatron
// (megatron/core/datasets/indexed_dataset.py).
var tokensTypes = map[byte]tensor.DType{
	1: tensor.Uint8, 2: tensor.Int8, 3: tensor.Int16, 4: tensor.Int32, 5: tensor.Int64, 6: tensor.Float64,
	7: tensor.Float32, 8: tensor.Uint16,
}

// tokensHeadBytes is the size of the header of an index: the magic number, version as uint64, the code of the type
// as a byte, the numbers of sequences and of documents as uint64. The length of each sequence in tokens as int32
// and its offset in the .bin as int64 follow, and more that is not read.
const tokensHeadBytes = 34

// megatron reads the header of an index. size is the size of the .bin in bytes.
func (f *tokensFile) megatron(size int64, given *column.Type) error {
	var head [tokensHeadBytes]byte
	if err := source.ReadAt(f.index, head[:], 0); err != nil || string(head[:9]) != source.MegatronMagic ||
		binary.LittleEndian.Uint64(head[9:]) != 1 {
		return errors.New("its .idx is not an index of Megatron, version 1")
	}
	info, err := f.index.Stat()
	if err != nil {
		return err
	}
	d := tokensTypes[head[17]]
	if f.count = int64(binary.LittleEndian.Uint64(head[18:])); d == tensor.Invalid || f.count < 0 ||
		f.count > (info.Size()-tokensHeadBytes)/12 {
		return fmt.Errorf("its .idx is corrupt or cut short: %d sequences of type %d in %d bytes", f.count, head[17],
			info.Size())
	}
	if given != nil && (given.DType != d || !given.Ragged) {
		return fmt.Errorf("contains lists of %v; :%v cannot convert them, but the transforms PadTruncate and Cast can",
			d, given)
	}
	f.size, f.lengths, f.at = int64(d.Size()), tokensHeadBytes, tokensHeadBytes+4*f.count
	f.column.DType, f.column.Ragged = d, true
	return f.check(size)
}

// check returns an error if a sequence is not inside of the .bin, before any record is read.
func (f *tokensFile) check(size int64) error {
	// Lengths and offsets of many sequences are read together: an index has millions.
	const block = 64 << 10
	lengths, places := make([]byte, 4*block), make([]byte, 8*block)
	for i := int64(0); i < f.count; i += block {
		n := min(block, f.count-i)
		if err := errors.Join(source.ReadAt(f.index, lengths[:4*n], f.lengths+4*i),
			source.ReadAt(f.index, places[:8*n], f.at+8*i)); err != nil {
			return source.WithoutPath(err)
		}
		for k := range n {
			at, length := int64(binary.LittleEndian.Uint64(places[8*k:])),
				int64(int32(binary.LittleEndian.Uint32(lengths[4*k:])))
			if at < 0 || length < 0 || at > size || length > (size-at)/f.size {
				return fmt.Errorf("sequence %d of %d tokens from byte %d is not in the .bin of %d bytes", i+k, length, at, size)
			}
		}
	}
	return nil
}

// raw finds the records of a file of size bytes that has only tokens, with or without the header of llm.c.
func (f *tokensFile) raw(size int64, given *column.Type) error {
	head := make([]byte, 12)
	_ = source.ReadAt(f.data, head, 0) // a shorter file has no header
	d := source.TokensOf(head)
	if d != tensor.Invalid {
		f.begin = 1024 // 256 numbers: magic, version, tokens
	}
	switch {
	case d == tensor.Invalid && (given == nil || given.Ragged || len(given.Shape) != 1):
		return errors.New("is a file of tokens that does not describe them; state their type and how many a " +
			"record has: --fields 'tokens:uint16[1024]'")
	case given == nil || given.Ragged || len(given.Shape) != 1:
		return fmt.Errorf("is one sequence of %d tokens; --fields says how many a record has: --fields 'tokens:%v[1024]'",
			(size-f.begin)/int64(d.Size()), d)
	case d != tensor.Invalid && given.DType != d:
		return fmt.Errorf("holds %v, which :%v cannot convert; leave the type as it is, and convert it with the "+
			"transform Cast", d, given)
	}
	f.column.DType, f.column.Shape = given.DType, given.Shape
	f.size, f.length = int64(given.DType.Size()), int64(given.Shape[0])
	if n := int64(binary.LittleEndian.Uint32(head[8:])); d != tensor.Invalid && n != (size-f.begin)/f.size {
		return fmt.Errorf("its header says %d tokens, and there are %d", n, (size-f.begin)/f.size)
	}
	if d == tensor.Invalid && size%f.size != 0 {
		return fmt.Errorf("has %d bytes, which is not a multiple of %v", size, given.DType)
	}
	tokens := (size - f.begin) / f.size
	f.count = tokens / f.length
	if rest := tokens % f.length; rest > 0 {
		f.column.Note = fmt.Sprintf("the last %d of %d tokens do not fill a record and are left out", rest, tokens)
	}
	return nil
}

// Columns implements rows.File.
func (f *tokensFile) Columns() []Column { return []Column{f.column} }

// Count implements rows.File.
func (f *tokensFile) Count() int64 { return f.count }

// Close implements rows.File.
func (f *tokensFile) Close() error {
	if f.index == nil {
		return f.data.Close()
	}
	return errors.Join(f.data.Close(), f.index.Close())
}

// Rows implements rows.File.
func (f *tokensFile) Rows(first int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for i := first; i < f.count; i++ {
			if !yield(tokensRecord{f, i}, nil) {
				return
			}
		}
	}
}

// tokensRecord is record i of a file of tokens, as a Row.
type tokensRecord struct {
	file *tokensFile
	i    int64
}

// Each implements rows.Row.
func (r tokensRecord) Each(buf *[]byte, v Visitor) error {
	at := v.Column([]byte(tokensColumn))
	if at < 0 {
		return nil
	}
	f := r.file
	place, length := f.begin+r.i*f.length*f.size, f.length
	if f.index != nil {
		var b [12]byte
		if err := errors.Join(source.ReadAt(f.index, b[:4], f.lengths+4*r.i),
			source.ReadAt(f.index, b[4:], f.at+8*r.i)); err != nil {
			return source.WithoutPath(err)
		}
		place, length = int64(binary.LittleEndian.Uint64(b[4:])), int64(binary.LittleEndian.Uint32(b[:]))
	}
	begin := len(*buf)
	if length > source.MaxValue/f.size {
		return source.ValueError("%d tokens are too many", length)
	}
	*buf = append(*buf, make([]byte, length*f.size)...)
	x := Value{DType: f.column.DType, Data: (*buf)[begin:]}
	x.SetShape(int(length))
	if err := source.ReadAt(f.data, x.Data, place); err != nil {
		return source.WithoutPath(err)
	}
	return v.Value(at, &x)
}
