package inspect

import (
	"context"
	"errors"
	"fmt"
	"image"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// PreviewOptions configures Preview. The zero value of every field but Count is usable.
type PreviewOptions struct {
	Count      int    // samples at most; must be > 0
	Columns    int    // 0 chooses
	Seed       uint64 // of the choice
	First      bool   // take the first records instead of a choice
	Even       bool   // rather fewer than Count than a number that is no multiple of the classes
	Field      string // of images; "" means the first there is
	LabelField string // "" means the first field with class names, or of whole numbers
}

// Sheet is a contact sheet: pictures of records in a grid, and how they came to be.
type Sheet struct {
	Path    string      `json:"path"`    // of the dataset
	Field   string      `json:"field"`   // of the images
	Records []int       `json:"records"` // shown, row by row
	Labels  []string    `json:"labels,omitempty"`
	Columns int         `json:"columns"`
	Width   int         `json:"width"` // of the picture, in pixels
	Height  int         `json:"height"`
	Values  string      `json:"values"` // how stored values became brightness
	Picture *image.RGBA `json:"-"`
}

// Preview draws a contact sheet of a dataset. It holds the picture and one record
// in memory.
func Preview(ctx context.Context, dataset string, opts PreviewOptions) (*Sheet, error) {
	p, err := look(dataset)
	if err != nil {
		return nil, err
	}
	p.close()
	ds, err := mmapds.Open(dataset, mmapds.WithFields(opts.fields()...))
	if errors.Is(err, store.ErrUnsupported) && opts.Field == "" {
		return nil, fmt.Errorf("%w; --field and --label-field choose datasets of an HDF5 file", worded{err})
	}
	if err != nil {
		return nil, worded{err}
	}
	defer ds.Close()
	shot := &shoot{ds: ds, opts: opts}
	return shot.sheet(ctx)
}

// fields returns the fields to open: where the images are named, only what is needed, as
// other datasets of a foreign file may not fit.
func (o PreviewOptions) fields() []string {
	if o.Field == "" {
		return nil
	}
	fields := []string{o.Field}
	if o.LabelField != "" && o.LabelField != o.Field {
		fields = append(fields, o.LabelField)
	}
	return fields
}

// shoot makes one Sheet.
type shoot struct {
	ds     *mmapds.Dataset
	opts   PreviewOptions
	images store.Field
	planes planes
	labels *store.Field // nil if there is none
	groups int          // classes that the records were drawn from, 0 if they were not drawn by class
}

func (s *shoot) sheet(ctx context.Context) (*Sheet, error) {
	if err := s.choose(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(), err)
	}
	values, err := s.readLabels(ctx)
	if err != nil {
		return nil, err
	}
	records := s.pick(values)
	tone, err := s.tone(ctx, records)
	if err != nil {
		return nil, err
	}
	out := &Sheet{Path: s.path(), Field: s.images.Name, Records: records, Values: tone.text, Columns: s.columns(len(records))}
	cells := make([]cell, len(records))
	for i, r := range records {
		cells[i].caption, cells[i].label = fmt.Sprintf("#%d", r), s.labelText(values, r)
		if s.labels != nil {
			out.Labels = append(out.Labels, cells[i].label)
		}
	}
	d, err := newDrawing(s.title(), s.subtitle(len(records), tone), out.Columns, s.planes, cells)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(), err)
	}
	if err := s.draw(ctx, d, records, tone); err != nil {
		return nil, err
	}
	out.Picture = d.canvas
	out.Width, out.Height = d.canvas.Rect.Dx(), d.canvas.Rect.Dy()
	return out, nil
}

// draw places the pictures. An encoded image that cannot be decoded leaves its frame empty.
func (s *shoot) draw(ctx context.Context, d *drawing, records []int, t tone) error {
	g := &gallery{ds: s.ds, field: s.images, planes: s.planes, tone: t}
	decoder := imagefile.New(imagefile.Options{})
	reader := newSlabReader(s.ds, s.images)
	for i, r := range records {
		slab, err := reader.read(ctx, r, r+1)
		if err != nil {
			return err
		}
		picture, err := g.picture(decoder, slab.record(0))
		if err != nil {
			picture = image.NewRGBA(image.Rect(0, 0, 1, 1))
		}
		d.place(i, picture)
	}
	return nil
}

// encodedPlanes is the cell of a field of image files, which have sizes of their own.
var encodedPlanes = planes{w: largest, h: largest, c: 3}

func (s *shoot) path() string { return s.ds.Files().Path }

// choose finds the fields of images and labels.
func (s *shoot) choose() error {
	for _, f := range s.ds.Schema().Fields {
		p, err := planesOf(f)
		if f.Content == store.Image {
			p, err = encodedPlanes, nil
		}
		switch {
		case s.opts.Field != "" && f.Name == s.opts.Field && err != nil:
			return fmt.Errorf("field %q cannot be shown: %w", f.Name, err)
		case err == nil && s.images.Name == "" && (s.opts.Field == "" || f.Name == s.opts.Field):
			s.images, s.planes = f, p
		}
	}
	if s.images.Name == "" {
		return errors.New("it has no field of images: neither image files nor arrays of shape (h, w), (c, h, w) or (h, w, c) with 1, 3 or 4 channels")
	}
	return s.chooseLabels()
}

func (s *shoot) chooseLabels() error {
	if s.opts.LabelField != "" && s.opts.LabelField == s.images.Name {
		return fmt.Errorf("field %q is shown; labels are another field", s.images.Name)
	}
	for _, f := range s.ds.Schema().Fields {
		usable := len(f.Shape) == 0 && !f.Ragged && !f.DType.IsFloat() && f.Name != s.images.Name
		switch {
		case f.Name == s.opts.LabelField && !usable:
			return fmt.Errorf("field %q holds no labels: they are one whole number a record", f.Name)
		case !usable, s.opts.LabelField != "" && f.Name != s.opts.LabelField:
			continue
		case s.labels == nil || len(s.labels.Classes) == 0 && len(f.Classes) > 0:
			s.labels = &f
		}
	}
	if s.labels == nil && s.opts.LabelField != "" {
		return fmt.Errorf("it has no field %q", s.opts.LabelField)
	}
	return nil
}

// labelStep is how many labels are read at once.
const labelStep = 1 << 16

// readLabels returns the label of every record, nil if there are none.
func (s *shoot) readLabels(ctx context.Context) ([]int64, error) {
	if s.labels == nil {
		return nil, nil
	}
	n, size := s.ds.Len(), s.labels.RecordBytes()
	values := make([]int64, 0, n)
	indices, raw := make([]int, 0, labelStep), aligned(labelStep*size)
	for a := 0; a < n; a += labelStep {
		indices = indices[:0]
		for i := a; i < min(n, a+labelStep); i++ {
			indices = append(indices, i)
		}
		part := raw[:len(indices)*size]
		if err := s.ds.Gather(ctx, s.labels.Name, indices, part); err != nil {
			return nil, err
		}
		values = appendInts(values, tensor.Of(s.labels.Spec, len(indices), part))
	}
	return values, nil
}

// aligned returns n bytes that can hold elements of any type.
func aligned(n int) []byte {
	words := store.NewField("words", tensor.Uint64, (n+7)/8)
	return store.NewRecord(store.Schema{Fields: []store.Field{words}}).Values[0][:n]
}

func (s *shoot) labelText(values []int64, record int) string {
	if values == nil {
		return ""
	}
	v := values[record]
	if v >= 0 && v < int64(len(s.labels.Classes)) {
		return printable(s.labels.Classes[v])
	}
	return printable(path.Base(s.labels.Name)) + " " + strconv.FormatInt(v, 10)
}

func (s *shoot) title() string {
	name, err := filepath.Abs(s.path())
	if err != nil {
		name = s.path()
	}
	name = filepath.Base(name)
	if s.ds.Files().Format == "hdf5" {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return printable(name)
}

func (s *shoot) subtitle(shown int, t tone) string {
	parts := []string{
		fmt.Sprintf("%s of %s", cli.Count(int64(shown)), cli.Counted(int64(s.ds.Len()), "record")),
		fmt.Sprintf("%s %v %v", printable(s.images.Name), s.images.DType, s.images.Shape),
	}
	if s.images.Content == store.Image {
		parts[1] = printable(s.images.Name) + ", image files"
	}
	if s.images.Layout != "" {
		parts[1] += " " + s.images.Layout
	}
	if s.labels != nil && len(s.labels.Classes) > 0 {
		n := int64(len(s.labels.Classes))
		parts = append(parts, strings.Replace(cli.Counted(n, "classe"), "1 classe", "1 class", 1))
	}
	if !t.plain {
		parts = append(parts, t.text)
	}
	return strings.Join(parts, "   ·   ")
}
