package preview

import (
	"context"
	"fmt"
	"image"
	"iter"

	"golang.org/x/image/draw"

	"github.com/penstock/penstock/cmd/internal/inspect/dataset"
	"github.com/penstock/penstock/cmd/internal/inspect/render"
	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// markedSize is the longer side of pictures with marks on them, in pixels, and markedCount the
// number of pictures: marks need larger pictures than the usual thumbnails.
const (
	markedSize  = 280
	markedCount = 24
)

// reader returns the records of a sheet, one after the other: as they are stored, or after a
// pipeline.
type reader interface {
	// next reads a record. The picture is nil if the image cannot be decoded.
	next(ctx context.Context, record int) (*image.RGBA, error)
	// value returns the value of a field of the record that next has read, and its type.
	value(field string) (tensor.Spec, []byte, error)
	close()
}

// stored reads records in their stored form.
type stored struct {
	ctx     context.Context
	ds      *mmapds.Dataset
	render  *render.Renderer
	decoder *imagefile.Decoder
	readers map[string]*dataset.BatchReader
	record  int
}

// newStored returns a reader of ds that draws with r.
func newStored(ds *mmapds.Dataset, r *render.Renderer) *stored {
	return &stored{ds: ds, render: r, decoder: imagefile.New(imagefile.Options{}),
		readers: make(map[string]*dataset.BatchReader)}
}

func (s *stored) next(ctx context.Context, record int) (*image.RGBA, error) {
	s.ctx, s.record = ctx, record
	view, err := s.view(s.render.Field.Name)
	if err != nil {
		return nil, err
	}
	picture, err := s.render.Draw(s.decoder, view)
	if err != nil {
		return nil, nil // an empty frame on the sheet
	}
	return picture, nil
}

func (s *stored) value(field string) (tensor.Spec, []byte, error) {
	view, err := s.view(field)
	return s.ds.Schema().Fields[s.ds.Schema().Index(field)].Spec, view.Bytes(), err
}

// view reads a field of the current record. Each field has a reader with its own buffer, so that
// several fields of a record are valid at a time.
func (s *stored) view(field string) (tensor.View, error) {
	r := s.readers[field]
	if r == nil {
		r = dataset.NewBatchReader(s.ds, s.ds.Schema().Fields[s.ds.Schema().Index(field)])
		s.readers[field] = r
	}
	batch, err := r.Read(s.ctx, s.record, s.record+1)
	if err != nil {
		return tensor.View{}, err
	}
	return batch.Record(0), nil
}

func (s *stored) close() {}

// moved reads records as training sees them: a loader with a batch size of 1 applies the pipeline,
// to the images and to everything that lies on them.
type moved struct {
	images   string
	pipeline *transforms.Pipeline
	ld       *loader.Loader
	pull     func() (loader.Batch, error, bool)
	stop     func()
	batch    loader.Batch
	layout   render.PixelLayout
	bright   render.Brightness
}

// newMoved returns a reader of these records, in their order. The loader works without goroutines
// of its own, since the sheet takes one record after the other.
func newMoved(ctx context.Context, ds *mmapds.Dataset, images string, records []int, o Options, fields []string) (
	*moved, error) {
	view, err := combine.NewSelect(ds, combine.Select{Records: records, Fields: fields})
	if err != nil {
		return nil, err
	}
	ld, err := loader.New(view, loader.Options{BatchSize: 1, Seed: o.Seed, Workers: loader.Synchronous,
		Transforms: map[string]loader.Transform{images: loader.Images{Pipeline: o.Pipeline}}})
	if err != nil {
		return nil, err
	}
	m := &moved{images: images, ld: ld, pipeline: o.Pipeline}
	m.pull, m.stop = iter.Pull2(ld.Epoch(ctx, 0))
	return m, nil
}

func (m *moved) next(_ context.Context, _ int) (*image.RGBA, error) {
	b, err, ok := m.pull()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the loader has no more records")
	}
	m.batch = b
	spec, pixels, err := m.value(m.images)
	if err != nil {
		return nil, err
	}
	if m.layout.W == 0 {
		if m.layout, m.bright, err = render.AfterPipeline(spec, m.pipeline); err != nil {
			return nil, err
		}
	}
	return m.layout.Image(pixels, m.bright), nil
}

func (m *moved) value(field string) (tensor.Spec, []byte, error) {
	for _, s := range m.ld.Specs() {
		if s.Name == field {
			return s, m.batch.Field(field).Bytes(), nil
		}
	}
	return tensor.Spec{}, nil, fmt.Errorf("the loader has no field %q", field)
}

func (m *moved) close() {
	m.stop()
	m.ld.Close()
}

// reader returns the reader for the records of the sheet.
func (s *sheetBuilder) reader(ctx context.Context, records []int, tone render.Brightness) (reader, error) {
	if s.opts.Pipeline == nil {
		return newStored(s.ds, &render.Renderer{Field: s.images, Layout: s.planes, Brightness: tone}), nil
	}
	fields := []string{s.images.Name}
	if s.marks != nil {
		fields = append(fields, s.marks.Fields()...)
	}
	return newMoved(ctx, s.ds, s.images.Name, records, s.opts, fields)
}

// pictures draws the records one by one, with their marks. Marks are drawn after scaling, so that
// their lines have the same width on large and small images.
func (s *sheetBuilder) pictures(ctx context.Context, records []int, tone render.Brightness) (
	list []*image.RGBA, err error) {
	r, err := s.reader(ctx, records, tone)
	if err != nil {
		return nil, err
	}
	defer r.close()
	f, err := newFonts()
	if err != nil {
		return nil, err
	}
	for _, record := range records {
		picture, err := r.next(ctx, record)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", record, err)
		}
		if picture == nil {
			list = append(list, image.NewRGBA(image.Rect(0, 0, 1, 1)))
			continue
		}
		w, h := picture.Rect.Dx(), picture.Rect.Dy()
		small := scaled(picture, markedSize)
		if s.marks != nil {
			marks, err := s.marks.Read(r.value, w, h)
			if err != nil {
				return nil, fmt.Errorf("record %d: %w", record, err)
			}
			marks.Draw(small, small.Rect, f.number)
		}
		list = append(list, small)
	}
	return list, nil
}

// scaled returns the picture with a longer side of long pixels. Small pictures are enlarged without
// smoothing, so that their pixels stay visible.
func scaled(picture *image.RGBA, long int) *image.RGBA {
	w, h := picture.Rect.Dx(), picture.Rect.Dy()
	to := image.Rect(0, 0, max(1, (w*long+max(w, h)/2)/max(w, h)), max(1, (h*long+max(w, h)/2)/max(w, h)))
	out := image.NewRGBA(to)
	var scaler draw.Scaler = draw.CatmullRom
	if to.Dx() > w {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(out, to, picture, picture.Rect, draw.Src, nil)
	return out
}
