package geometry

import (
	"slices"
	"strings"
	"unicode"

	"github.com/penstock/penstock/tensor"
)

// size is the height and the width of an image, 0 if each record has its own.
type size struct{ h, w int }

func sizeOf(s tensor.Spec) size {
	switch {
	case !s.IsImage() || len(s.Shape) != 3:
		return size{}
	case s.Layout == tensor.CHW:
		return size{h: s.Shape[1], w: s.Shape[2]}
	}
	return size{h: s.Shape[0], w: s.Shape[1]}
}

// channels returns the number of channels of stored pixels, and 0 for image files, whose channels differ.
func channels(s tensor.Spec) int {
	switch {
	case !s.IsImage() || len(s.Shape) != 3:
		return 0
	case s.Layout == tensor.CHW:
		return s.Shape[0]
	}
	return s.Shape[2]
}

// Words of the names of fields.
var (
	maskWords = []string{"mask", "masks", "seg", "segm", "segmentation", "segmentations", "semantic", "panoptic",
		"labelmap", "annotation", "annotations", "matte", "trimap", "matting", "depth", "disparity", "flow", "normals"}
	placeWords = []string{"box", "boxes", "bbox", "bboxes", "bndbox", "keypoint", "keypoints", "kpt", "kpts", "landmark",
		"landmarks", "point", "points", "joints", "polygon", "polygons", "corners", "coord", "coords", "coordinates",
		"segmentation", "segmentations", "objects", "rois", "roi", "quad", "quads", "polyline", "polylines"}
	edgeNames = []string{"xmin", "xmax", "ymin", "ymax"}
)

// wordsOf divides a name: segMask_2 is seg, mask and 2.
func wordsOf(name string) []string {
	var words []string
	last := ' '
	for _, r := range name {
		switch letter := unicode.IsLetter(r); {
		case !letter && !unicode.IsDigit(r):
			words = append(words, "")
		case len(words) == 0, letter != unicode.IsLetter(last) && last != ' ', unicode.IsUpper(r) && unicode.IsLower(last):
			words = append(words, string(unicode.ToLower(r)))
		default:
			words[len(words)-1] += string(unicode.ToLower(r))
		}
		last = r
	}
	return words
}

func named(s tensor.Spec, list []string) bool {
	return slices.ContainsFunc(wordsOf(s.Name), func(w string) bool { return slices.Contains(list, w) })
}

// MayBeMask reports whether a field of a record may hold a class or another number for each pixel of
// an image: by its name, or as it has one channel where another image has three, or as an array
// of an image's height and width.
func MayBeMask(s tensor.Spec, record []Field) bool {
	if !s.IsImage() {
		return isMap(s, record)
	}
	if named(s, maskWords) {
		return true
	}
	return channels(s) == 1 && slices.ContainsFunc(record, func(f Field) bool { return channels(f.Spec) == 3 })
}

// isMap reports whether an array has a number for each pixel of an image.
func isMap(s tensor.Spec, record []Field) bool {
	if s.Content == tensor.Mask {
		return true
	}
	if s.Content != "" || s.Ragged || len(s.Shape) < 2 {
		return false
	}
	if named(s, maskWords) {
		return true
	}
	return slices.ContainsFunc(record, func(f Field) bool {
		of := sizeOf(f.Spec)
		for i := range len(s.Shape) - 1 {
			if of.h > 1 && of.w > 1 && s.Shape[i] == of.h && s.Shape[i+1] == of.w {
				return true
			}
		}
		return false
	})
}

// MayBePlaces reports whether a field may hold boxes or points: by its name, or as its records, or their
// rows, have four numbers, or are rows of two, or of points with two or three.
func MayBePlaces(s tensor.Spec) bool {
	switch {
	case s.IsImage(), s.Content == tensor.SourceName:
		return false
	case s.Content == tensor.Boxes, s.Content == tensor.Keypoints:
		return true
	case s.IsBytes():
		return s.Content != tensor.Mask && named(s, placeWords)
	case len(s.Shape) == 0 && !s.Ragged: // one number
		return slices.Contains(edgeNames, strings.ToLower(s.Name)) || named(s, []string{"bbox", "bndbox"})
	case named(s, placeWords):
		return true
	case s.DType == tensor.Bool || s.DType == tensor.Uint8 || s.DType == tensor.Int8:
		return false
	}
	rows := s.Shape
	if s.Ragged {
		return len(rows) > 0 && len(rows) < 3 && (rows[len(rows)-1] == 2 || rows[len(rows)-1] == 3 && len(rows) == 2 ||
			rows[len(rows)-1] == 4 && len(rows) == 1)
	}
	return isPlaces(rows)
}

// isPlaces reports whether records of this shape can be a box, boxes or points. The shape of a camera matrix cannot.
func isPlaces(shape tensor.Shape) bool {
	n := len(shape)
	switch {
	case n == 1:
		return shape[0] == 4
	case n != 2 || shape[0] == 3 && (shape[1] == 3 || shape[1] == 4) || shape[0] == 4 && shape[1] == 4:
		return false
	}
	return shape[1] >= 2 && shape[1] <= 4
}

// placesName returns the content that a field may have which may be places.
func placesName(s tensor.Spec) string {
	if n := len(s.Shape); n > 0 && s.Shape[n-1] == 4 || n == 0 {
		return tensor.Boxes
	}
	return tensor.Keypoints
}
