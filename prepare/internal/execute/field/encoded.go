package field

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// For returns the options for a source. A dataset with images or masks as files is copied with its files, unless
// some flag asks for pixels, or the dataset base that is appended to has pixels.
func (c Options) For(fields []source.Field, base *store.Manifest) Options {
	asked := c.Decode || c.ChangesPixels() || c.Transforms != nil || !c.Rules.keepPixels() || c.Rules.Deep == HighByte
	stored := 0
	for _, f := range fields {
		switch {
		case !f.Image() && !isMaskFile(f):
		// With a single field of images, the user's flags decide for that field.
		case !f.Stored, base != nil && !slices.ContainsFunc(base.Fields, func(g store.Field) bool {
			return g.Name == f.Name && g.Content == f.Content && g.IsBytes()
		}):
			return c
		default:
			stored++
		}
	}
	c.KeepEncoded = c.KeepEncoded || stored > 0 && !asked
	return c
}

// keptField returns the job for image files that are stored as files, perhaps made smaller. recipe is nil if the
// field has no transforms.
func (c Options) keptField(f source.Field, recipe json.RawMessage) (Job, error) {
	keep := encodedField{copyField{f}, c.decodes}
	p, err := c.ShrinkPipeline(recipe)
	if p == nil || err != nil {
		return keep, err
	}
	// ShrinkPipeline returns nothing else.
	resize := p.Transforms()[0].(transforms.Resize)
	return &shrinkField{encodedField: keep, pipeline: p, longer: resize.Fit == "longer",
		limit: max(c.LargerThan, resize.Size[0]), quality: c.JPEGQuality()}, nil
}

// ShrinkPipeline returns the pipeline for photos that are too large: a Resize of one side. It is nil if all files
// stay as they are.
func (c Options) ShrinkPipeline(recipe json.RawMessage) (p *transforms.Pipeline, err error) {
	switch {
	case recipe != nil:
		p, err = transforms.Parse(recipe)
	case c.Resize != nil:
		p, err = transforms.Compose(transforms.Resize{Size: c.Resize, Fit: c.Fit, Interpolation: c.Filter,
			PassOrder: c.PassOrder})
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if ts := p.Transforms(); len(ts) == 1 {
		if r, ok := ts[0].(transforms.Resize); ok && (r.Fit == "shorter" || r.Fit == "longer") && r.MaxSize == 0 {
			return p, nil
		}
	}
	return nil, errors.New("--keep-encoded: files can only be made smaller, by --resize to one number, with --fit " +
		"shorter or longer")
}

// Shrinks reports whether large files are made smaller.
func (c Options) Shrinks() bool {
	return c.KeepEncoded && (c.Resize != nil || c.Transforms != nil)
}

// JPEGQuality returns the quality of JPEGs that are made.
func (c Options) JPEGQuality() int {
	if c.Quality == 0 {
		return defaultQuality
	}
	return c.Quality
}

// defaultQuality is the default of FFCV's writer, too.
const defaultQuality = 90

// EncodedProblems calls add for each possible problem with the flags of --keep-encoded; wrong says whether the
// flags have that problem.
func (c Options) EncodedProblems(add func(wrong bool, format string, args ...any)) {
	if !c.Shrinks() {
		add(c.Quality != 0, "--jpeg-quality %d: is for files that --keep-encoded and --resize make smaller", c.Quality)
		add(c.LargerThan != 0, "--larger-than %d: is for files that --keep-encoded and --resize make smaller", c.LargerThan)
	}
	if !c.KeepEncoded {
		return
	}
	others := c
	others.Resize = nil
	add(others.ChangesPixels() || !c.Rules.keepPixels(),
		"--keep-encoded: files stay as they are, or are made smaller by --resize; no other flag can change their pixels")
	if c.Resize != nil {
		_, err := c.ShrinkPipeline(nil)
		add(err != nil, "%v", err)
		add(err == nil && c.LargerThan != 0 && c.LargerThan < c.Resize[0],
			"--larger-than %d: is less than what --resize %d makes, and no photo is enlarged", c.LargerThan, c.Resize[0])
	}
	add(c.Quality < 0 || c.Quality > 100, "--jpeg-quality %d: must be from 1 to 100", c.Quality)
}

// encodedField stores image files as they are, if they can be opened.
type encodedField struct {
	copyField
	opener func() opener
}

func (f encodedField) NewWorker() Worker { return encodedWorker{f, f.opener()} }

// encodedWorker is the Worker of an encodedField.
type encodedWorker struct {
	encodedField
	opener opener
}

// Probe opens the first image, although files are stored as they are: a file that nobody can decode must not be
// stored.
func (w encodedWorker) Probe(name string, value []byte) (store.Field, error) {
	if _, err := w.opener.open(w.opener.parse(value)); err != nil {
		return store.Field{}, err
	}
	return w.encodedField.Probe(name, value)
}

func (w encodedWorker) Do(name string, dst, value []byte) (out []byte, err error) {
	return w.keep(name, dst, w.opener.parse(value))
}

// keep copies a file if it can be opened.
func (w encodedWorker) keep(name string, dst []byte, v imageValue) (out []byte, err error) {
	if _, err := w.opener.open(v); err != nil {
		return dst, &SampleError{err}
	}
	return w.encodedField.Do(name, dst, v.bytes)
}

// keptImages returns the job for records of any number of image files, which are stored as files.
func (c Options) keptImages(f source.Field, recipe json.RawMessage) (Job, error) {
	if recipe != nil || !c.Rules.keepPixels() {
		return nil, errors.New("records with any number of images keep the files as they are; give transforms to the loader")
	}
	return imagesField{encodedField{copyField{f}, c.decodes}}, nil
}

// imagesField stores any number of image files in each record, if they can be opened.
type imagesField struct{ encodedField }

func (f imagesField) NewWorker() Worker {
	return imagesWorker{encodedWorker{f.encodedField, f.opener()}}
}

// imagesWorker is the Worker of an imagesField.
type imagesWorker struct{ encodedWorker }

func (w imagesWorker) Probe(_ string, value []byte) (store.Field, error) {
	return w.field.Field, w.check(value)
}

func (w imagesWorker) Do(_ string, dst, value []byte) (out []byte, err error) {
	return append(dst[:0], value...), ofSample(w.check(value))
}

// check returns an error if an image of a record cannot be opened.
func (w imagesWorker) check(value []byte) error {
	err := tensor.EachImage(value, func(file []byte) error {
		_, err := w.opener.open(w.opener.parse(file))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", w.field.Name, err)
	}
	return nil
}
