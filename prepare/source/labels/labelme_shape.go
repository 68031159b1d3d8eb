package labels

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// labelmeAnnotation is the content of a JSON file.
type labelmeAnnotation struct {
	Path   string         `json:"imagePath"`
	Width  int            `json:"imageWidth"`
	Height int            `json:"imageHeight"`
	Shapes []labelmeShape `json:"shapes"`
}

// labelmeShape is a shape that is an object, or with others of its group a part of an object.
type labelmeShape struct {
	Label  string       `json:"label"`
	Points [][2]float64 `json:"points"`
	Group  *int64       `json:"group_id"`
	Type   string       `json:"shape_type"` // "" in old files, which have polygons only
	Mask   string       `json:"mask"`       // PNG in base64; its top left corner is at the first point
}

// parseLabelme reads a file of LabelMe. Other JSON files in the folder must not pass for one without shapes, so shapes
// and imagePath are required.
func parseLabelme(root *vfs.Root, path string) (a labelmeAnnotation, err error) {
	text, err := root.ReadFile(path, nil, source.MaxText)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, source.ValueError("is not a JSON file of LabelMe: %w", err)
	}
	if a.Shapes == nil || a.Path == "" {
		return a, source.ValueError("is not a JSON file of LabelMe: it has no shapes and imagePath")
	}
	return a, nil
}

// image returns the path of the image, relative to the JSON file at path. LabelMe on Windows writes backslashes.
func (a labelmeAnnotation) image(path string) string {
	return filepath.Join(filepath.Dir(path), filepath.FromSlash(strings.ReplaceAll(a.Path, `\`, "/")))
}

// groups returns the shapes of each object. Shapes with the same label and group_id are one object.
func (a labelmeAnnotation) groups() (list [][]labelmeShape) {
	type key struct {
		label string
		group int64
	}
	at := make(map[key]int)
	for _, s := range a.Shapes {
		// A shape without a group is an object of its own.
		if s.Group == nil {
			list = append(list, []labelmeShape{s})
			continue
		}
		k := key{s.Label, *s.Group}
		i, known := at[k]
		if !known {
			i = len(list)
			at[k], list = i, append(list, nil)
		}
		list[i] = append(list[i], s)
	}
	return list
}

// labelmeObject makes an object of its shapes. The box encloses all shapes, and the mask is the union of the shapes.
func labelmeObject(shapes []labelmeShape) (o object, err error) {
	o.Box = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, s := range shapes {
		b, err := s.box()
		if err != nil {
			return o, source.ValueError("shape %q: %w", source.Clip(s.Label), err)
		}
		o.Box = [4]float64{min(o.Box[0], b[0]), min(o.Box[1], b[1]), max(o.Box[2], b[2]), max(o.Box[3], b[3])}
	}
	o.Area = (o.Box[2] - o.Box[0]) * (o.Box[3] - o.Box[1])
	o.Draw = func(w, h int) (runMask, error) {
		var parts []runMask
		for _, s := range shapes {
			m, err := s.draw(w, h)
			if err != nil {
				return m, err
			}
			parts = append(parts, m)
		}
		return unionOfMasks(parts...), nil
	}
	return o, nil
}

// pointsNeeded has the least number of points of each type of shape.
var pointsNeeded = map[string]int{"polygon": 3, "rectangle": 2, "circle": 2, "line": 2, "linestrip": 2, "point": 1,
	"points": 1, "mask": 2}

// box returns the smallest box around a shape.
func (s labelmeShape) box() (b [4]float64, err error) {
	kind := cmp.Or(s.Type, "polygon")
	n, known := pointsNeeded[kind]
	if !known {
		return b, fmt.Errorf("is of the unknown type %q", source.Clip(kind))
	}
	if len(s.Points) < n {
		return b, fmt.Errorf("a %s of %d points", kind, len(s.Points))
	}
	b = [4]float64{s.Points[0][0], s.Points[0][1], s.Points[0][0], s.Points[0][1]}
	for _, p := range s.Points {
		b = [4]float64{min(b[0], p[0]), min(b[1], p[1]), max(b[2], p[0]), max(b[3], p[1])}
	}
	// Its two points, the center and one on the edge, do not enclose it.
	if kind == "circle" {
		c, r := s.Points[0], s.radius()
		b = [4]float64{c[0] - r, c[1] - r, c[0] + r, c[1] + r}
	}
	return b, nil
}

// radius returns the radius of a circle, which is given by its center and a point on it.
func (s labelmeShape) radius() float64 {
	return math.Hypot(s.Points[1][0]-s.Points[0][0], s.Points[1][1]-s.Points[0][1])
}

// circleCorners is the number of corners of the polygon that approximates a circle.
const circleCorners = 256

// draw returns the pixels of a shape, filled like a polygon of COCO.
func (s labelmeShape) draw(w, h int) (runMask, error) {
	var corners []float64
	switch kind := cmp.Or(s.Type, "polygon"); kind {
	case "polygon":
		for _, p := range s.Points {
			corners = append(corners, p[0], p[1])
		}
	case "rectangle":
		a, b := s.Points[0], s.Points[1]
		corners = []float64{a[0], a[1], b[0], a[1], b[0], b[1], a[0], b[1]}
	case "circle":
		for i := range circleCorners {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / circleCorners)
			corners = append(corners, s.Points[0][0]+s.radius()*cos, s.Points[0][1]+s.radius()*sin)
		}
	case "mask":
		return s.bitmap(w, h)
	default:
		return runMask{}, fmt.Errorf("a %s has no area", kind)
	}
	return polygonMask(corners, h, w)
}

// bitmap returns the pixels of a shape that is given as a PNG.
func (s labelmeShape) bitmap(w, h int) (runMask, error) {
	file, err := base64.StdEncoding.DecodeString(s.Mask)
	if err != nil {
		return runMask{}, fmt.Errorf("mask: %w", err)
	}
	m, err := new(imagefile.Decoder).Numbers(bytes.Clone(file))
	if err != nil {
		return runMask{}, fmt.Errorf("mask: %w", err)
	}
	left, top := int(math.Round(s.Points[0][0])), int(math.Round(s.Points[0][1]))
	return maskOfBits(h, w, func(x, y int) bool {
		x, y = x-left, y-top
		return x >= 0 && y >= 0 && x < m.W && y < m.H && m.Pix[(y*m.W+x)*m.DType.Size()] != 0
	}), nil
}
