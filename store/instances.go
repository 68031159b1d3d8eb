package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/tensor"
)

// ImageOf returns the position of the image that a mask, boxes or keypoints lie on: the image that the field names, or
// the only image of the schema. It is -1 if the schema has no images and the field names no image.
func (s Schema) ImageOf(f tensor.Spec) (int, error) {
	var images []string
	last := -1
	for i, g := range s.Fields {
		if g.IsImage() {
			images, last = append(images, g.Name), i
		}
	}
	switch at := s.Index(f.Image); {
	case f.Image == "" && len(images) < 2:
		return last, nil
	case f.Image == "":
		return -1, fmt.Errorf("field %q: %s on one of the images %s; name it", f.Name, f.Content,
			strings.Join(images, ", "))
	case at < 0 || !s.Fields[at].IsImage():
		return -1, fmt.Errorf("field %q: there is no field of images %q that its %s could lie on%s", f.Name,
			f.Image, f.Content,
			suggest.Hint(f.Image, images))
	default:
		return at, nil
	}
}

// CheckInstances returns an error if fields of the same instances have different numbers of rows in a record: row i of
// the boxes and row i of the labels are one object. rows returns the number of rows of the field at a position.
func (s Schema) CheckInstances(rows func(field int) int) error {
	for i, f := range s.Fields {
		if f.Instances == "" || f.IsBytes() { // only its decoder knows how many masks an encoded file has
			continue
		}
		first := slices.IndexFunc(s.Fields, func(g Field) bool { return g.Instances == f.Instances && !g.IsBytes() })
		if a, b := rows(first), rows(i); a != b {
			return fmt.Errorf("%s has %d rows and %s has %d; fields of the instances %q have one number of rows a record",
				s.Fields[first].Name, a, f.Name, b, f.Instances)
		}
	}
	return nil
}
