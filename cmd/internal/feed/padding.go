package feed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/store"
)

// padToLargest is the Op of the batchTransform that pads images of several sizes.
const padToLargest = "PadToLargest"

// padding returns the PadToLargest for a field of images; nil if the field has none.
func (o *Options) padding(f store.Field) *batchTransform {
	i := slices.IndexFunc(o.BatchTransforms, func(t batchTransform) bool { return t.Op == padToLargest && t.takes(f) })
	if i < 0 {
		return nil
	}
	return &o.BatchTransforms[i]
}

// checkPadding reports a PadToLargest that has no images to pad, and batch transforms that need
// images of one size.
func (o *Options) checkPadding(fields []made) error {
	for _, t := range o.BatchTransforms {
		padded := func(m made) bool { return m.sizes != nil && t.takes(m.field) }
		switch {
		case t.Op == padToLargest && !slices.ContainsFunc(fields, padded):
			return errors.New("batch_transforms: PadToLargest: there are no images with transforms that it could pad" +
				named(t))
		case (t.Op == "MixUp" || t.Op == "CutMix" || t.Op == "RandomChoice") &&
			slices.ContainsFunc(fields, func(m made) bool { return m.sizes != nil }):
			return fmt.Errorf("batch_transforms: %s mixes images of one size, and PadToLargest pads images of several sizes; leave "+
				"one of the two out", t.Op)
		}
	}
	return nil
}

// named returns the field of a batch transform for an error message.
func named(t batchTransform) string {
	if t.Field == "" {
		return ""
	}
	return fmt.Sprintf(" in the field %q", t.Field)
}

// takes reports whether t is for this field of images, or for all fields of images.
func (t *batchTransform) takes(f store.Field) bool { return t.Field == "" || t.Field == f.Name }

// pad makes m a field of padded images, and adds the field with the sizes that the images had.
func (t *batchTransform) pad(m *made, images loader.Images, f store.Field) error {
	p := loader.PadImages{Images: images, Multiple: t.MultipleOf, Fill: t.Fill, MaskFill: t.MaskFill}
	m.transform = p
	if err := m.settle(f); err != nil {
		return err
	}
	m.field.Ragged = false
	sizes := p.Sizes(f.Spec)
	field := store.NewField(sizes.Name, sizes.DType, sizes.Shape...)
	m.sizes, m.padded = &field, true
	return nil
}
