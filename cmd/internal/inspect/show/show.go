// Package show has the command inspect show, which prints the values of records. A Reader reads one
// record at a time and describes its value in each field; package report uses it, too.
package show

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// Record is the values of one record, as --json prints them.
type Record struct {
	Record int     `json:"record"`
	Split  string  `json:"split,omitempty"`  // the split of the record, if there are splits
	Source string  `json:"source,omitempty"` // name of the sample that it was built from
	Values []Value `json:"fields"`
}

// Value is a record's value in one field. Texts and image files have a member of their own; all
// other fields have Elements.
type Value struct {
	Field    string            `json:"field"`
	DType    tensor.DType      `json:"dtype"`
	Shape    tensor.Shape      `json:"shape"`             // of this record; for a ragged field, the number of rows comes first
	Class    string            `json:"class,omitempty"`   // name of a label
	Text     *string           `json:"text,omitempty"`    // of content tensor.Text or tensor.SourceName
	Image    *ImageFile        `json:"image,omitempty"`   // of content tensor.Image
	Images   []*ImageFile      `json:"images,omitempty"`  // of content tensor.Images
	Elements []json.RawMessage `json:"values,omitempty"`  // the first of them; NaN and infinities are strings
	Moments  *store.Moments    `json:"moments,omitempty"` // of all elements, if there are several
}

// ImageFile describes an encoded image.
type ImageFile struct {
	Format  string `json:"format"` // "" if the format is unknown
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Bytes   int    `json:"bytes"`
	Problem string `json:"problem,omitempty"` // why it cannot be read
}

// Options configures Each and a Reader. The zero value is usable.
type Options struct {
	dataset.Selection
	Elements int // print at most this many elements of an array; 0 means all
}

// Each calls f with the records of ranges such as "7" and "5:8", in this order, or with the first
// five records if there are no ranges. One record is in memory at a time.
func Each(ctx context.Context, path string, spans []string, opts Options, f func(*Record) error) error {
	ds, err := opts.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	v := NewReader(ds, opts)
	if len(spans) == 0 {
		spans = []string{fmt.Sprintf(":%d", min(5, ds.Len()))}
	}
	for _, text := range spans {
		if err := v.span(ctx, text, f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// Reader reads and describes records. It serves one goroutine.
type Reader struct {
	ds      *mmapds.Dataset
	opts    Options
	decoder *imagefile.Decoder
}

// NewReader returns a Reader of ds.
func NewReader(ds *mmapds.Dataset, opts Options) *Reader {
	return &Reader{ds: ds, opts: opts, decoder: imagefile.New(imagefile.Options{})}
}

// span calls f with the records of one range.
func (v *Reader) span(ctx context.Context, text string, f func(*Record) error) error {
	s, err := parseRange(text)
	if err != nil {
		return err
	}
	first, end, err := s.within(v.ds.Len())
	if err != nil {
		return err
	}
	for i := first; i < end; i++ {
		shown, err := v.Read(ctx, i)
		if err == nil {
			err = f(shown)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Read returns the values of record i.
func (v *Reader) Read(ctx context.Context, i int) (*Record, error) {
	shown := &Record{Record: i, Split: v.ds.Files().Split}
	if shown.Split == "" {
		shown.Split = dataset.SplitOf(v.ds.Manifest(), int64(v.ds.Stored(i)))
	}
	name, err := v.ds.SourceName(ctx, i)
	if err != nil {
		return nil, err
	}
	shown.Source = strings.ToValidUTF8(name, "\uFFFD")
	for _, f := range v.ds.Schema().Fields {
		s, err := dataset.NewBatchReader(v.ds, f).Read(ctx, i, i+1)
		if err != nil {
			return nil, err
		}
		value := v.value(f, s.Record(0))
		shown.Values = append(shown.Values, value)
	}
	return shown, nil
}

// value describes a value. Texts that are not UTF-8 get replacement characters, as JSON can
// hold no other texts.
func (v *Reader) value(f store.Field, x tensor.View) Value {
	out := Value{Field: f.Name, DType: f.DType, Shape: x.Shape()}
	if !f.Ragged {
		out.Shape = out.Shape[1:]
	}
	switch f.Content {
	case tensor.Text, tensor.SourceName:
		text := strings.ToValidUTF8(string(x.Bytes()), "\uFFFD")
		out.Text = &text
		return out
	case tensor.Image:
		out.Image = v.imageFile(x.Bytes())
		return out
	case tensor.Images:
		out.Images = v.imageFiles(x.Bytes())
		return out
	}
	texts := elements(x, v.opts.Elements)
	out.Elements = numbers(texts)
	if len(f.Classes) > 0 && len(texts) == 1 {
		if class, ok := f.DType.Read(x.Bytes()).Int64(); ok {
			out.Class = dataset.ClassName(f, class)
		}
	}
	if n := len(x.Bytes()) / f.DType.Size(); n > 1 {
		m := dataset.Moments(moments.Of(dataset.Floats(x)))
		out.Moments = &m
	}
	return out
}

// imageFiles describes the images of a record that has several. If the record is corrupt, the last
// entry has the problem.
func (v *Reader) imageFiles(record []byte) []*ImageFile {
	files := []*ImageFile{}
	for len(record) > 0 {
		file, rest, err := tensor.CutImage(record)
		if err != nil {
			return append(files, &ImageFile{Problem: err.Error(), Bytes: len(record)})
		}
		files, record = append(files, v.imageFile(file)), rest
	}
	return files
}

// imageFile describes an encoded image. Opening the image finds most kinds of damage.
func (v *Reader) imageFile(data []byte) *ImageFile {
	file := &ImageFile{Format: string(imagefile.Sniff(data[:min(len(data), imagefile.SniffLen)])), Bytes: len(data)}
	source, err := v.decoder.Open(data)
	if err != nil {
		file.Problem = err.Error()
		return file
	}
	file.Width, file.Height, _ = source.Size()
	return file
}
