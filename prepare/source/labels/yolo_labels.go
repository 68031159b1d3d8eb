package labels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// yoloSlack is how far a coordinate may be outside of 0 to 1, as in Ultralytics.
const yoloSlack = 0.01

// read returns the objects in a file of labels. A row is a class and a box, a polygon, or a box and keypoints, in
// parts of the width and height of the image. An image without a file has no objects. Repeated rows count once, as
// in Ultralytics. If any row of the file is too long for a box, all rows are polygons.
func (c yoloConfig) read(root *vfs.Root, path string, w, h int) (out annotation, err error) {
	out.Upright = true
	text, err := root.ReadFile(path, nil, source.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, inFile(path, source.WithoutPath(err))
	}
	var rows [][]float64
	known := make(map[string]bool)
	polygons := false
	for line := range strings.Lines(string(text)) {
		row, err := numbersOf(line)
		if err != nil {
			return out, source.ValueError("file %s: row %d: %w", filepath.ToSlash(path), len(rows), err)
		}
		key := rowKey(row)
		if row == nil || known[key] {
			continue
		}
		rows, known[key] = append(rows, row), true
		polygons = polygons || len(row) > 6 && c.points == 0
	}
	for i, row := range rows {
		o, err := c.object(row, polygons, float64(w), float64(h))
		if err != nil {
			return out, source.ValueError("file %s: row %d: %w", filepath.ToSlash(path), i, err)
		}
		out.Objects = append(out.Objects, o)
	}
	return out, nil
}

// rowKey returns a key that only rows of equal numbers share.
func rowKey(row []float64) string {
	b := make([]byte, 0, 8*len(row))
	for _, x := range row {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x+0)) // -0 is 0
	}
	return string(b)
}

// numbersOf parses a row; nil if it is empty.
func numbersOf(line string) (row []float64, err error) {
	for word := range strings.FieldsSeq(line) {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", source.Clip(word))
		}
		row = append(row, x)
	}
	return row, nil
}

// object converts a row to an object on an image of size w by h.
func (c yoloConfig) object(row []float64, polygon bool, w, h float64) (o object, err error) {
	if o.Class = int64(row[0]); float64(o.Class) != row[0] || o.Class < 0 {
		return o, fmt.Errorf("class %v is not a whole number from 0 on", row[0])
	}
	places := row[1:]
	switch {
	case polygon && len(places)%2 != 0:
		return o, fmt.Errorf("%d numbers; a polygon has x and y for each corner", len(places))
	case !polygon && len(places) != 4+c.points*c.numbers:
		return o, fmt.Errorf("%d numbers; a box has 4, and kpt_shape [%d, %d]", len(places), c.points, c.numbers)
	}
	if err := c.check(places, polygon); err != nil {
		return o, err
	}
	if polygon {
		corners := make([]float64, len(places))
		o.Box = [4]float64{w, h, 0, 0}
		for i := 0; i < len(places); i += 2 {
			x, y := places[i]*w, places[i+1]*h
			corners[i], corners[i+1] = x, y
			o.Box = [4]float64{min(o.Box[0], x), min(o.Box[1], y), max(o.Box[2], x), max(o.Box[3], y)}
		}
		o.Draw = func(w, h int) (runMask, error) { return polygonMask(corners, h, w) }
		return o, nil
	}
	x, y, bw, bh := places[0], places[1], places[2], places[3]
	o.Box = [4]float64{(x - bw/2) * w, (y - bh/2) * h, (x + bw/2) * w, (y + bh/2) * h}
	if c.points > 0 {
		o.Points = c.keypoints(places[4:], w, h)
	}
	return o, nil
}

// check returns an error for a coordinate outside of the image. Visibilities, and the negative coordinates of
// hidden points, are not checked.
func (c yoloConfig) check(places []float64, polygon bool) error {
	for i, x := range places {
		if point := i - 4; !polygon && point >= 0 && (c.numbers == 3 && point%3 == 2 || c.numbers == 2 && x < 0) {
			continue
		}
		if !(x >= -yoloSlack && x <= 1+yoloSlack) {
			return fmt.Errorf("%v is not from 0 to 1: places are parts of the width and the height", x)
		}
	}
	return nil
}

// keypoints returns x and y in pixels and the visibility of each point. A point of two numbers is hidden if either
// number is negative. Hidden points are at 0, 0.
func (c yoloConfig) keypoints(list []float64, w, h float64) []float32 {
	out := make([]float32, 0, 3*c.points)
	for ; len(list) > 0; list = list[c.numbers:] {
		x, y, seen := list[0], list[1], 2.
		if c.numbers == 3 {
			seen = list[2]
		} else if x < 0 || y < 0 {
			seen = 0
		}
		if seen == 0 {
			x, y = 0, 0
		}
		out = append(out, float32(x*w), float32(y*h), float32(seen))
	}
	return out
}
