package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"strings"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/moments"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Shown is the values of one record.
type Shown struct {
	Record int     `json:"record"`
	Split  string  `json:"split,omitempty"` // that the record is in
	Values []Value `json:"fields"`
}

// Value is what a record has in one field.
type Value struct {
	Field    string            `json:"field"`
	DType    tensor.DType      `json:"dtype"`
	Shape    tensor.Shape      `json:"shape"`             // of this record; of ragged fields the rows come first
	Class    string            `json:"class,omitempty"`   // name of a label
	Text     *string           `json:"text,omitempty"`    // of content store.Text
	Image    *ImageFile        `json:"image,omitempty"`   // of content store.Image
	Elements []json.RawMessage `json:"values,omitempty"`  // the first of them; NaN and infinities are strings
	Moments  *store.Moments    `json:"moments,omitempty"` // of all elements, where there are several

	picture image.Image // nil unless it was asked for
}

// ImageFile is an encoded image.
type ImageFile struct {
	Format  string `json:"format"` // "" if it is none that can be read
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Bytes   int    `json:"bytes"`
	Problem string `json:"problem,omitempty"` // why it cannot be read
}

// ShowOptions configures Show. The zero value is usable.
type ShowOptions struct {
	Choice
	Elements int  // of an array at most; 0 means all
	Pictures bool // draw images, too
}

// Show calls f with the records of spans, in that order: "7", "5:8". Without any it takes
// the first five. It holds one record in memory.
func Show(ctx context.Context, path string, spans []string, opts ShowOptions, f func(*Shown) error) error {
	ds, err := opts.open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	v := &viewer{ds: ds, opts: opts, decoder: imagefile.New(imagefile.Options{})}
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

// viewer reads records.
type viewer struct {
	ds      *mmapds.Dataset
	opts    ShowOptions
	decoder *imagefile.Decoder
	shots   []*shoot // by field; nil of those that are no pictures
	tones   []tone
}

func (v *viewer) span(ctx context.Context, text string, f func(*Shown) error) error {
	s, err := parseSpan(text)
	if err != nil {
		return err
	}
	first, end, err := s.within(v.ds.Len())
	if err != nil {
		return err
	}
	for i := first; i < end; i++ {
		shown, err := v.record(ctx, i)
		if err == nil {
			err = f(shown)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *viewer) record(ctx context.Context, i int) (*Shown, error) {
	shown := &Shown{Record: i, Split: v.ds.Files().Split}
	if shown.Split == "" {
		shown.Split = splitOf(v.ds.Manifest(), int64(i))
	}
	for k, f := range v.ds.Schema().Fields {
		s, err := newSlabReader(v.ds, f).read(ctx, i, i+1)
		if err != nil {
			return nil, err
		}
		value := v.value(f, s.record(0))
		if v.opts.Pictures {
			if value.picture, err = v.picture(ctx, k, f, s.record(0)); err != nil {
				return nil, err
			}
		}
		shown.Values = append(shown.Values, value)
	}
	return shown, nil
}

// splitOf returns the split of a record, "" if there are none.
func splitOf(m *store.Manifest, record int64) string {
	if m == nil {
		return ""
	}
	for _, s := range m.Splits {
		for _, r := range s.Ranges {
			if record >= r[0] && record < r[1] {
				return s.Name
			}
		}
	}
	return ""
}

func (v *viewer) value(f store.Field, x tensor.View) Value {
	out := Value{Field: f.Name, DType: f.DType, Shape: x.Shape()}
	if !f.Ragged {
		out.Shape = out.Shape[1:]
	}
	switch f.Content {
	case store.Text:
		text := strings.ToValidUTF8(string(x.Bytes()), "\uFFFD")
		out.Text = &text
		return out
	case store.Image:
		out.Image = v.imageFile(x.Bytes())
		return out
	}
	texts := elements(x, v.opts.Elements)
	out.Elements = numbers(texts)
	if len(f.Classes) > 0 && len(texts) == 1 {
		out.Class = className(f, appendInts(nil, x)[0])
	}
	if n := len(x.Bytes()) / f.DType.Size(); n > 1 {
		m := result(moments.Of(floats(x)))
		out.Moments = &m
	}
	return out
}

// className returns the name of a class, "" if it has none.
func className(f store.Field, label int64) string {
	if label >= 0 && label < int64(len(f.Classes)) {
		return f.Classes[label]
	}
	return ""
}

func (v *viewer) imageFile(data []byte) *ImageFile {
	file := &ImageFile{Format: string(imagefile.Sniff(data[:min(len(data), imagefile.SniffLen)])), Bytes: len(data)}
	source, err := v.decoder.Open(data)
	if err != nil {
		file.Problem = err.Error()
		return file
	}
	file.Width, file.Height, _ = source.Size()
	return file
}

// picture draws a value, nil if it is no picture.
func (v *viewer) picture(ctx context.Context, k int, f store.Field, x tensor.View) (image.Image, error) {
	if f.Content == store.Image {
		img, err := decoded(v.decoder, x.Bytes())
		if err != nil {
			return nil, nil // Value says why
		}
		return img, nil
	}
	if v.shots == nil {
		v.shots, v.tones = make([]*shoot, len(v.ds.Schema().Fields)), make([]tone, len(v.ds.Schema().Fields))
	}
	p, err := planesOf(f)
	if err != nil || f.Ragged {
		return nil, nil
	}
	if v.shots[k] == nil {
		v.shots[k] = &shoot{ds: v.ds, images: f, planes: p}
		if v.tones[k], err = v.shots[k].tone(ctx, []int{0}); err != nil {
			return nil, err
		}
	}
	return p.image(x.Bytes(), v.tones[k]), nil
}

// decoded returns the pixels of an encoded image.
func decoded(d *imagefile.Decoder, data []byte) (*image.RGBA, error) {
	source, err := d.Open(data)
	if err != nil {
		return nil, err
	}
	w, h, c := source.Size()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	err = source.Scan(img.Rect, func(y int, strip transforms.Image) error {
		for row := range strip.H {
			for x := range w {
				px := img.Pix[img.PixOffset(x, y+row):][:4]
				for k := range 3 {
					px[k] = strip.Pix[row*strip.Stride+x*strip.Step+min(k, c-1)]
				}
				px[3] = 255
			}
		}
		return nil
	})
	return img, err
}
