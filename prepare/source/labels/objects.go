package labels

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// object is an annotated object of an image. Coordinates are corner coordinates in pixels, see [tensor.Boxes].
type object struct {
	Box       [4]float64 // left, top, right and bottom
	Class     int64
	Area      float64
	Crowd     bool
	Difficult bool
	Truncated bool
	Points    []float32 // x, y and visibility of each of setFormat.Points points

	// Draw returns the pixels of the object on an image of size w by h. nil: the format has no outlines.
	Draw func(w, h int) (runMask, error)
}

// annotation is the objects of an image.
type annotation struct {
	Objects       []object
	Width, Height int  // of the image by the annotation; 0 if unknown
	Upright       bool // coordinates are on the image after its EXIF orientation was applied
}

// annotatedImage is an image of a set, with functions that read its annotations.
type annotatedImage struct {
	Name  string // sample name: path inside the source, unique
	File  string // path
	Split string // one of setFormat.Splits, "" if there are none
	ID    int64

	// Failed is why the image cannot be read, if that is known before.
	Failed error

	// Read returns the objects of the image, whose size is w by h. It may run concurrently for several images, and
	// is called only if a field needs objects.
	Read func(w, h int) (annotation, error)

	// Mask returns the file with the class of each pixel, in the memory of buf if it fits. nil: there is no such
	// file.
	Mask func(buf []byte) ([]byte, error)
}

// imageSource is the images of a set, in an order that is the same on each pass.
type imageSource interface {
	Len() int
	Image(i int) annotatedImage
	Close() error
}

// setFormat describes the images of a set to samples.
type setFormat struct {
	Kind    string
	Path    string
	Classes []string // of the objects
	Splits  []string
	Hints   []string
	Points  int // keypoints of each object; 0 for none
	// MaskClasses are the class names of the numbers in masks.
	MaskClasses []string
	// MaskFiles says that images have files with the class of each pixel.
	MaskFiles bool
	Columns   []string // names of the columns that the set has
	Default   []string // columns that become fields without --fields
}

// newSamples returns the source of a set. It owns root and set on success, and closes set with an error.
func newSamples(root *vfs.Root, f setFormat, set imageSource, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	s := &samples{setFormat: f, root: root, set: set, orient: opts.Orient}
	err := s.choose(selection)
	if err == nil && set.Len() == 0 {
		err = errors.New("holds no images")
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", f.Path, errors.Join(err, set.Close()))
	}
	s.info = source.Info{Kind: f.Kind, Name: source.BaseName(f.Path), Unit: "images", Count: int64(set.Len()),
		Splits: f.Splits, Hints: f.Hints}
	for _, c := range s.columns {
		s.info.Fields = append(s.info.Fields, c.field)
		// A mask file has the classes of pixels, so a mask needs no objects then.
		s.reads = s.reads || !c.alone && !(f.MaskFiles && c.field.Origin == maskColumn)
	}
	return s, nil
}

// samples is the source of a set.
type samples struct {
	setFormat
	root    *vfs.Root
	set     imageSource
	orient  bool
	info    source.Info
	columns []chosen
	reads   bool // some column needs the objects, so they are read
}

// chosen is a column that becomes a field.
type chosen struct {
	columnOf
	field source.Field
}

// choose finds the selected columns, or the default ones.
func (s *samples) choose(selection []column.Selection) error {
	if len(selection) == 0 {
		for _, name := range s.Default {
			selection = append(selection, column.Selection{Column: name})
		}
	}
	for _, w := range selection {
		if !slices.Contains(s.Columns, w.Column) {
			return fmt.Errorf("--fields %s: there is no %q%s", w, w.Column, suggest.Hint(w.Column, s.Columns))
		}
		if w.Type != "" || w.Content.Name != "" {
			return fmt.Errorf("--fields %s: the source knows the types of its fields; write %s without one", w, w.Column)
		}
		c := chosen{columnOf: columnsByName[w.Column]}
		c.field = c.make(s.setFormat, w.FieldName())
		c.field.Origin = w.Column
		s.columns = append(s.columns, c)
	}
	return nil
}

// Info implements source.Source.
func (s *samples) Info() source.Info { return s.info }

// Close implements source.Source.
func (s *samples) Close() error { return errors.Join(s.set.Close(), s.root.Close()) }

// Samples implements source.Source.
func (s *samples) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for i := range s.set.Len() {
			if !yield(s.sample(i), nil) {
				return
			}
		}
	}
}

// Sample implements source.Indexed.
func (s *samples) Sample(i int64) (source.Sample, error) { return s.sample(int(i)), nil }

func (s *samples) sample(i int) source.Sample {
	img := s.set.Image(i)
	return source.Sample{Name: img.Name, Split: img.Split, Data: data{s, img}}
}

// data is the Data of an image.
type data struct {
	source *samples
	image  annotatedImage
}

// Read implements source.Data.
func (d data) Read(v *source.Values) error {
	// The image is parsed once for all of its fields.
	r, ok := v.Scratch.(*reading)
	if !ok {
		r = new(reading)
		v.Scratch = r
	}
	if err := r.open(d.source, d.image); err != nil {
		return err
	}
	for i, c := range d.source.columns {
		if err := c.put(r, v, i); err != nil {
			return fmt.Errorf("%s: %w", c.field.Name, err)
		}
	}
	return nil
}

// imageList is an imageSource in memory.
type imageList []annotatedImage

// Len implements imageSource.
func (s imageList) Len() int { return len(s) }

// Image implements imageSource.
func (s imageList) Image(i int) annotatedImage { return s[i] }

// Close implements imageSource.
func (s imageList) Close() error { return nil }
