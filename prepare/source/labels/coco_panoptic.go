package labels

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"path/filepath"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
)

// panoptic is a panoptic annotation of an image: its segments are in a PNG. https://cocodataset.org/#format-data
type panoptic struct {
	File     string    `json:"file_name"`
	Segments []segment `json:"segments_info"`
}

// segment is a segment of an image. ID is the number of its pixels in the PNG.
type segment struct {
	ID       uint32    `json:"id"`
	Category int64     `json:"category_id"`
	Area     float64   `json:"area"`
	Box      []float64 `json:"bbox"`
	Crowd    cocoTruth `json:"iscrowd"`
}

// segments returns the segments of a panoptic annotation as objects. The PNG is decoded once, by the first mask
// that is drawn.
func (s *cocoSet) segments(e *cocoEntry, p panoptic) (list []object, err error) {
	if !filepath.IsLocal(filepath.FromSlash(p.File)) {
		return nil, fmt.Errorf("file_name %q leads out of the folder", p.File)
	}
	// The PNGs of panoptic_val2017.json are in the folder panoptic_val2017 beside it.
	file := filepath.Join(strings.TrimSuffix(e.file.name, ".json"), filepath.FromSlash(p.File))
	ids := sync.OnceValues(func() (idMap, error) { return readIDs(source.File{Root: s.root, Path: file}) })
	for _, g := range p.Segments {
		class, known := s.classes[g.Category]
		if !known {
			return nil, fmt.Errorf("segment %d: category_id %d is none of the categories", g.ID, g.Category)
		}
		if len(g.Box) != 4 {
			return nil, fmt.Errorf("segment %d: bbox has %d numbers, not 4", g.ID, len(g.Box))
		}
		list = append(list, object{
			Class: class, Area: g.Area, Crowd: bool(g.Crowd), Box: [4]float64{g.Box[0], g.Box[1], g.Box[0] + g.Box[2],
				g.Box[1] + g.Box[3]},
			Draw: func(w, h int) (runMask, error) {
				m, err := ids()
				if err != nil {
					return runMask{}, fmt.Errorf("file %s: %w", filepath.ToSlash(file), err)
				}
				if m.w != w || m.h != h {
					return runMask{}, fmt.Errorf("file %s: is %dx%d pixels, and the image %dx%d", filepath.ToSlash(file),
						m.w, m.h, w, h)
				}
				return maskOfBits(h, w, func(x, y int) bool { return m.ids[y*w+x] == g.ID }), nil
			},
		})
	}
	return list, nil
}

// idMap is the segment id of each pixel, row by row.
type idMap struct {
	w, h int
	ids  []uint32
}

// readIDs decodes a panoptic PNG, whose colors are ids: red + 256 green + 65536 blue.
func readIDs(file source.File) (m idMap, err error) {
	data, err := file.Bytes(nil)
	if err != nil {
		return m, err
	}
	c, err := imagefile.ReadConfig(data)
	if err == nil {
		// The header is checked before the PNG is decoded, as it can claim any size.
		err = c.Check(0)
	}
	if err != nil {
		return m, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return m, source.ValueError("%w", err)
	}
	rgba := image.NewRGBA(image.Rect(0, 0, c.Width, c.Height))
	draw.Draw(rgba, rgba.Rect, img, img.Bounds().Min, draw.Src)
	m = idMap{c.Width, c.Height, make([]uint32, c.Width*c.Height)}
	for i := range m.ids {
		p := rgba.Pix[4*i:]
		m.ids[i] = uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
	}
	return m, nil
}
