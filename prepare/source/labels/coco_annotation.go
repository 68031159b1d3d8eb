package labels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/penstock/penstock/prepare/source"
)

// cocoAnnotation is an element of "annotations".
type cocoAnnotation struct {
	ID           json.Number     `json:"id"`
	Category     int64           `json:"category_id"`
	Box          []float64       `json:"bbox"` // left, top, width and height in pixels
	Area         *float64        `json:"area"`
	Crowd        cocoTruth       `json:"iscrowd"`
	Segmentation json.RawMessage `json:"segmentation"`
	Keypoints    []float64       `json:"keypoints"`
	panoptic
}

// called returns the id of the annotation for a message, "" if it has no id.
func (a *cocoAnnotation) called() string {
	if a.ID == "" {
		return ""
	}
	return fmt.Sprintf(" (id %s)", a.ID)
}

// cocoTruth is 0 or 1, or as some tools write it, false or true.
type cocoTruth bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *cocoTruth) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "0", "false", "null":
		*t = false
	case "1", "true":
		*t = true
	default:
		return fmt.Errorf("iscrowd is %.20s, neither 0 nor 1", text)
	}
	return nil
}

// objects reads and parses the annotations of an image from their places in the file.
func (s *cocoSet) objects(e *cocoEntry) ([]object, error) {
	list := make([]object, 0, len(e.annotations))
	for i, at := range e.annotations {
		// Only the annotations of this image are in memory. Their size was limited by maxElement.
		text := make([]byte, at.size)
		if err := source.ReadAt(e.file, text, at.at); err != nil {
			return nil, source.WithoutPath(err)
		}
		var a cocoAnnotation
		err := json.Unmarshal(text, &a)
		switch {
		case err != nil:
		// A panoptic annotation has all segments of the image.
		case a.Segments != nil:
			var more []object
			more, err = s.segments(e, a.panoptic)
			list = append(list, more...)
		default:
			var o object
			o, err = s.object(&a)
			list = append(list, o)
		}
		if err != nil {
			return nil, source.ValueError("annotation %d of image %d%s: %w", i, e.ID, a.called(), err)
		}
	}
	return list, nil
}

// object converts an annotation. A missing box is computed from the polygons, and a missing area from the box, as
// some tools leave them out. Masks are drawn later, by the worker that needs them.
func (s *cocoSet) object(a *cocoAnnotation) (o object, err error) {
	class, known := s.classes[a.Category]
	if !known {
		return o, fmt.Errorf("category_id %d is none of the categories", a.Category)
	}
	o.Class, o.Crowd = class, bool(a.Crowd)
	polygons, err := a.polygons()
	if err != nil {
		return o, err
	}
	switch {
	case len(a.Box) == 4:
		o.Box = [4]float64{a.Box[0], a.Box[1], a.Box[0] + a.Box[2], a.Box[1] + a.Box[3]}
	case len(a.Box) == 0 && polygons != nil:
		o.Box = extent(polygons)
	default:
		return o, fmt.Errorf("bbox has %d numbers, not 4", len(a.Box))
	}
	if o.Area = (o.Box[2] - o.Box[0]) * (o.Box[3] - o.Box[1]); a.Area != nil {
		o.Area = *a.Area
	}
	o.Draw = func(w, h int) (runMask, error) { return pixelsOf(a.Segmentation, polygons, w, h) }
	if s.points > 0 {
		o.Points, err = pointsOf(a.Keypoints, s.points)
	}
	return o, err
}

// polygons returns the polygons of the outline; nil if the outline is given as run lengths, or missing.
func (a *cocoAnnotation) polygons() (list [][]float64, err error) {
	if !bytes.HasPrefix(a.Segmentation, []byte("[")) {
		return nil, nil
	}
	if err = json.Unmarshal(a.Segmentation, &list); err != nil {
		return nil, fmt.Errorf("segmentation: %w", err)
	}
	return list, nil
}

// extent returns the smallest box around polygons.
func extent(polygons [][]float64) [4]float64 {
	b := [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, p := range polygons {
		for i := 0; i+1 < len(p); i += 2 {
			b = [4]float64{min(b[0], p[i]), min(b[1], p[i+1]), max(b[2], p[i]), max(b[3], p[i+1])}
		}
	}
	return b
}

// pixelsOf returns the pixels of an object: the union of its polygons, or decoded run lengths, as numbers or in the
// text form of pycocotools.
func pixelsOf(text json.RawMessage, polygons [][]float64, w, h int) (runMask, error) {
	// An object that is hidden in part has several polygons.
	if len(polygons) > 0 {
		var parts []runMask
		for _, p := range polygons {
			m, err := polygonMask(p, h, w)
			if err != nil {
				return m, err
			}
			parts = append(parts, m)
		}
		return unionOfMasks(parts...), nil
	}
	var packed struct {
		Size   []int           `json:"size"`
		Counts json.RawMessage `json:"counts"`
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return runMask{}, errors.New("it has no segmentation")
	}
	if err := json.Unmarshal(text, &packed); err != nil {
		return runMask{}, fmt.Errorf("segmentation: %w", err)
	}
	if len(packed.Size) != 2 || packed.Size[0] != h || packed.Size[1] != w {
		return runMask{}, fmt.Errorf("segmentation of size %v on an image of height %d and width %d", packed.Size, h, w)
	}
	// Uncompressed run lengths are numbers; COCO's own files have them for crowds.
	var counts []uint32
	if err := json.Unmarshal(packed.Counts, &counts); err == nil {
		return newMask(counts, h, w)
	}
	var letters string
	if err := json.Unmarshal(packed.Counts, &letters); err != nil {
		return runMask{}, errors.New("segmentation: counts are neither numbers nor a text")
	}
	return parseRuns(letters, h, w)
}

// pointsOf returns keypoints in corner coordinates. COCO gives the numbers of pixels, whose centers are half a
// pixel further. Points that are not labeled (v = 0) stay at 0, 0. An object without a list has only unlabeled
// points.
func pointsOf(list []float64, n int) ([]float32, error) {
	out := make([]float32, 3*n)
	if len(list) == 0 {
		return out, nil
	}
	if len(list) != 3*n {
		return nil, fmt.Errorf("keypoints have %d numbers, and their category has %d points of 3", len(list), n)
	}
	for i := 0; i < len(list); i += 3 {
		if v := list[i+2]; v != 0 {
			out[i], out[i+1], out[i+2] = float32(list[i]+.5), float32(list[i+1]+.5), float32(v)
		}
	}
	return out, nil
}
