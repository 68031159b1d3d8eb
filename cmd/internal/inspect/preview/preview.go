// Package preview has the command inspect preview: a contact sheet of samples.
//
// Draw chooses records, equally from all classes, and draws each image with the masks, boxes and
// keypoints that lie on it. With a pipeline, the sheet shows the images as training sees them, so
// that a wrong crop, or a mask that does not follow its image, is visible. The work is split into
// the choice (sampling.go), pictures with marks (marked.go), and the sheet with its text
// (sheet.go); package render draws pixels.
package preview

import (
	"context"
	"errors"
	"fmt"
	"image"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// Options configures Draw. The zero value of every field but Count is usable.
type Options struct {
	Count   int    // samples at most; must be > 0
	Columns int    // 0 chooses
	Seed    uint64 // of the choice
	First   bool   // take the first records instead of a choice
	Even    bool   // rather show fewer than Count records than a different number of each class
	Field   string // the images; "" means the first field that can be shown
	// Pipeline is the training's transforms of the images; nil shows the stored images.
	Pipeline   *transforms.Pipeline
	LabelField string // "" means the first field with class names, or of whole numbers
}

// Sheet is a contact sheet, pictures of records in a grid, and its description, which --json
// prints.
type Sheet struct {
	Path    string      `json:"path"`    // of the dataset
	Field   string      `json:"field"`   // of the images
	Records []int       `json:"records"` // shown, row by row
	Labels  []string    `json:"labels,omitempty"`
	Sources []string    `json:"sources,omitempty"` // names of the samples that the records were built from, if the dataset has them
	Columns int         `json:"columns"`
	Width   int         `json:"width"` // of the picture, in pixels
	Height  int         `json:"height"`
	Values  string      `json:"values"` // how stored values became brightness
	Picture *image.RGBA `json:"-"`
}

// Draw draws a contact sheet of the dataset at path. The sheet and one record are in memory at a
// time; with marks or a pipeline also the scaled pictures.
func Draw(ctx context.Context, path string, opts Options) (*Sheet, error) {
	p, err := dataset.Open(path)
	if err != nil {
		return nil, err
	}
	p.Close()
	ds, err := mmapds.Open(path, mmapds.WithFields(opts.fields()...))
	if errors.Is(err, store.ErrUnsupported) && opts.Field == "" {
		return nil, fmt.Errorf("%w; --field and --label-field choose datasets of an HDF5 file", dataset.ForFlags(err))
	}
	if err != nil {
		return nil, dataset.ForFlags(err)
	}
	defer ds.Close()
	return (&sheetBuilder{path: path, ds: ds, opts: opts}).sheet(ctx)
}

// fields returns the fields to open, nil for all fields. If the images are named, only the named
// fields are opened, because the other datasets of an HDF5 file may have another number of
// records.
func (o Options) fields() []string {
	if o.Field == "" {
		return nil
	}
	fields := []string{o.Field}
	if o.LabelField != "" && o.LabelField != o.Field {
		fields = append(fields, o.LabelField)
	}
	return fields
}

// sheetBuilder makes one Sheet.
type sheetBuilder struct {
	path   string // as it was given; may name a generation
	ds     *mmapds.Dataset
	opts   Options
	images store.Field
	planes render.PixelLayout
	marks  *render.Reader // nil if nothing lies on the images
	labels *store.Field   // nil if there is none
	groups int            // number of classes from which the records were drawn; 0 if they were not drawn by class
}

// sheet makes the sheet: choose the field, pick the records, decide the brightness, draw.
func (s *sheetBuilder) sheet(ctx context.Context) (*Sheet, error) {
	err := s.choose()
	if err == nil {
		s.labels, err = dataset.LabelField(s.ds, s.opts.LabelField, s.images.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	s.marks = render.NewReader(s.ds.Schema().Fields, s.images.Name)
	if s.marked() {
		if s.opts.Even {
			s.opts.Count = min(s.opts.Count, markedCount)
		}
		if s.labels != nil && s.labels.Classes == nil && s.opts.LabelField == "" {
			s.labels = nil // a number that belongs to the whole image, no class
		}
	}
	values, err := dataset.ReadLabels(ctx, s.ds, s.labels)
	if err != nil {
		return nil, err
	}
	records := s.pick(values)
	tone, err := render.BrightnessOf(ctx, s.ds, s.images, s.planes, records)
	if err != nil {
		return nil, err
	}
	out := &Sheet{Path: s.path, Field: s.images.Name, Records: records, Values: tone.Text,
		Columns: s.columns(len(records))}
	cells := make([]cell, len(records))
	for i, r := range records {
		name, err := s.ds.SourceName(ctx, r)
		if err != nil {
			return nil, err
		}
		cells[i].caption, cells[i].label = fmt.Sprintf("#%d", r), s.labelText(values, r)
		if name != "" {
			cells[i].caption += " " + shell.Line(path.Base(name))
			out.Sources = append(out.Sources, name)
		}
		if s.labels != nil {
			out.Labels = append(out.Labels, cells[i].label)
		}
	}
	var pictures []*image.RGBA
	thumb, legend := thumbSize(s.planes.W, s.planes.H), []render.Entry(nil)
	if s.marked() {
		if pictures, err = s.pictures(ctx, records, tone); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		thumb = image.Point{}
		for _, p := range pictures {
			thumb = image.Pt(max(thumb.X, p.Rect.Dx()), max(thumb.Y, p.Rect.Dy()))
		}
	}
	if s.marks != nil {
		legend = s.marks.Legend()
	}
	d, err := newDrawing(s.title(), s.subtitle(len(records), tone), legend, out.Columns, thumb, cells)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	if pictures == nil {
		err = s.draw(ctx, d, records, tone)
	}
	for i, p := range pictures {
		d.place(i, p)
	}
	if err != nil {
		return nil, err
	}
	out.Picture = d.canvas
	out.Width, out.Height = d.canvas.Rect.Dx(), d.canvas.Rect.Dy()
	return out, nil
}

// marked reports whether pictures are drawn larger, by pictures: something lies on the images, or
// they come out of a pipeline.
func (s *sheetBuilder) marked() bool { return s.marks != nil || s.opts.Pipeline != nil }

// draw draws and places the pictures of a sheet without marks. The frame of an image that cannot be
// decoded stays empty.
func (s *sheetBuilder) draw(ctx context.Context, d *drawing, records []int, t render.Brightness) error {
	g := &render.Renderer{Field: s.images, Layout: s.planes, Brightness: t}
	decoder := imagefile.New(imagefile.Options{})
	reader := dataset.NewBatchReader(s.ds, s.images)
	for i, r := range records {
		record, err := reader.Read(ctx, r, r+1)
		if err != nil {
			return err
		}
		picture, err := g.Draw(decoder, record.Record(0))
		if err != nil {
			picture = image.NewRGBA(image.Rect(0, 0, 1, 1))
		}
		d.place(i, picture)
	}
	return nil
}

// encodedPlanes gives a field of image files, whose sizes differ, square cells of the largest size.
var encodedPlanes = render.PixelLayout{W: largest, H: largest, C: 3}

// choose finds the field of images: the named one, or the first that can be shown.
func (s *sheetBuilder) choose() error {
	for _, f := range s.ds.Schema().Fields {
		p, err := render.PixelLayoutOf(f)
		if f.Content == tensor.Image {
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
		return errors.New("it has no field of one image a record: neither image files nor arrays of shape (h, w), " +
			"(c, h, w) or (h, w, c) with 1, 3 or 4 channels")
	}
	return nil
}

// labelText returns the text below a picture: the name of the class or, without one, the field's
// name and the number.
func (s *sheetBuilder) labelText(values []int64, record int) string {
	if values == nil {
		return ""
	}
	v := values[record]
	if v >= 0 && v < int64(len(s.labels.Classes)) {
		return shell.Line(s.labels.Classes[v])
	}
	return shell.Line(path.Base(s.labels.Name)) + " " + strconv.FormatInt(v, 10)
}

// title returns the name of the dataset, without folders and without the ending of a file.
func (s *sheetBuilder) title() string {
	folder, generation, named := layout.SplitGeneration(s.path)
	name, err := filepath.Abs(folder)
	if err != nil {
		name = folder
	}
	name = filepath.Base(name)
	if s.ds.Files().Format != "flat" {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	if named {
		name += "@" + generation
	}
	return shell.Line(name)
}

// subtitle says how many records are shown, of which field and type, and what happened to their
// values.
func (s *sheetBuilder) subtitle(shown int, t render.Brightness) string {
	parts := []string{
		fmt.Sprintf("%s of %s", units.Count(int64(shown)), units.Counted(int64(s.ds.Len()), "record")),
		fmt.Sprintf("%s %v %v", shell.Line(s.images.Name), s.images.DType, s.images.Shape),
	}
	if s.images.Content == tensor.Image {
		parts[1] = shell.Line(s.images.Name) + ", image files"
	}
	if s.images.Layout != "" {
		parts[1] += " " + s.images.Layout
	}
	if s.labels != nil && len(s.labels.Classes) > 0 {
		n := int64(len(s.labels.Classes))
		parts = append(parts, strings.Replace(units.Counted(n, "classe"), "1 classe", "1 class", 1))
	}
	if s.opts.Pipeline != nil {
		return strings.Join(append(parts, "after the pipeline"), "   ·   ")
	}
	if !t.Plain {
		parts = append(parts, t.Text)
	}
	return strings.Join(parts, "   ·   ")
}
