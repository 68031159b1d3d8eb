package raw

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// ImageField returns the name of the field of image files that [Source.Decode] can decode. It is an error if there
// is no such field or several, or if other fields (masks, boxes, keypoints) would have to move with the image.
func (s *Source) ImageField() (string, error) {
	at := -1
	for i, f := range s.records.info.Fields {
		switch {
		case f.Content == tensor.Mask || f.Content == tensor.Boxes || f.Content == tensor.Keypoints:
			return "", fmt.Errorf("the field %q lies on images, and is moved with them when they are loaded", f.Name)
		case f.Image() && at >= 0:
			return "", fmt.Errorf("there are two fields of images, %q and %q", s.records.info.Fields[at].Name, f.Name)
		case f.Image():
			at = i
		}
	}
	if at < 0 {
		return "", errors.New("it has no image files")
	}
	return s.records.info.Fields[at].Name, nil
}

// Decode makes records the pixels that a pipeline decodes from the image files. The pipeline must make uint8 images
// of one size and not be random, like the head that [transforms.Pipeline.Split] returns. The records equal the
// records that preprocess makes with these transforms, and ID stays the same. Decode must be called before records
// are read.
func (s *Source) Decode(p *transforms.Pipeline) error {
	h, err := s.newHead(p)
	if err != nil {
		return err
	}
	at := s.schema.Index(h.stored.Name)
	if at < 0 {
		return fmt.Errorf("the field %q is not loaded", h.stored.Name)
	}
	s.schema.Fields = slices.Clone(s.schema.Fields)
	s.schema.Fields[at], s.specs[at], s.head = h.stored, h.stored.Spec, h
	return nil
}

// newHead checks that the records of a pipeline can be stored: one size, 8 bits, not random. Channels come first,
// as in the datasets that preprocess writes.
func (s *Source) newHead(p *transforms.Pipeline) (*head, error) {
	name, err := s.ImageField()
	if err != nil {
		return nil, err
	}
	if p.Random() {
		return nil, errors.New("its transforms are random, and a record is the same in each epoch")
	}
	h := &head{field: s.records.job.Schema.Index(name), given: p}
	// The given pipeline is kept beside it: the loader continues with the transforms that the head does not do.
	planar := append(p.Transforms(), transforms.ToLayout{Layout: transforms.CHW})
	if h.pipeline, err = transforms.Compose(planar...); err != nil {
		return nil, err
	}
	text, err := json.Marshal(h.pipeline)
	if err != nil {
		return nil, err
	}
	if h.recipe, err = field.Tagged(text, name); err != nil {
		return nil, err
	}
	job, err := newJob(s.records.listing, s.records.info, withoutNames, h.recipe)
	if err != nil {
		return nil, err
	}
	h.stored = job.Schema.Fields[h.field]
	if h.stored.DType != tensor.Uint8 || len(h.stored.Shape) != 3 {
		return nil, fmt.Errorf("its images have %v %v, and not 8 bits", h.stored.DType, h.stored.Shape)
	}
	return h, nil
}

// Transforms returns the transforms that the Source applies to image files, as a recipe of preprocess; nil if
// records are the files.
func (s *Source) Transforms() json.RawMessage {
	if s.head == nil {
		return nil
	}
	return s.head.recipe
}

// Head returns the pipeline that decodes image files; nil if files are kept.
func (s *Source) Head() *transforms.Pipeline {
	if s.head == nil {
		return nil
	}
	return s.head.given
}

// Samples returns the number of samples in all splits.
func (s *Source) Samples() int64 { return s.records.listing.len() }

// PixelBytes returns the bytes of all samples as the pixels that Decode would make.
func (s *Source) PixelBytes(p *transforms.Pipeline) (int64, error) {
	h, err := s.newHead(p)
	if err != nil {
		return 0, err
	}
	return s.Samples() * int64(h.stored.RecordBytes()), nil
}
