package labels

import (
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// vocAnnotation is the content of an XML file. Objects can have parts with boxes of their own, which are not read.
type vocAnnotation struct {
	XMLName xml.Name    `xml:"annotation"`
	Width   string      `xml:"size>width"`
	Height  string      `xml:"size>height"`
	Objects []vocObject `xml:"object"`
}

type vocObject struct {
	Name      string `xml:"name"`
	Difficult string `xml:"difficult"`
	Truncated string `xml:"truncated"`
	Box       struct {
		Left   string `xml:"xmin"`
		Top    string `xml:"ymin"`
		Right  string `xml:"xmax"`
		Bottom string `xml:"ymax"`
	} `xml:"bndbox"`
}

// parseVOC reads an XML file.
func parseVOC(root *vfs.Root, path string) (a vocAnnotation, err error) {
	text, err := root.ReadFile(path, nil, source.MaxText)
	if err != nil {
		return a, inFile(path, err)
	}
	if err := xml.Unmarshal(text, &a); err != nil {
		return a, source.ValueError("file %s: %w", filepath.ToSlash(path), err)
	}
	return a, nil
}

// pascal are the 20 classes of Pascal VOC. Subsets of the set keep these numbers, and masks refer to them.
var pascal = []string{"aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
	"diningtable", "dog", "horse",
	"motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"}

// findClasses reads all XML files for the names of classes. If all names are classes of Pascal VOC, the classes are
// its 20 in their usual order, otherwise the names found, sorted. A file that cannot be read becomes a bad sample
// later.
func (s *vocSet) findClasses(files []string) error {
	var lock sync.Mutex
	found := make(map[string]bool)
	// Thousands of small files: in a bucket, each is a request.
	source.Overlap(s.ctx, len(files), func(i int) {
		a, err := parseVOC(s.root, files[i])
		lock.Lock()
		defer lock.Unlock()
		s.seen(1)
		for k := 0; k < len(a.Objects) && err == nil; k++ {
			found[strings.TrimSpace(a.Objects[k].Name)] = true
		}
	})
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	// An object without a name becomes a bad sample, and no class.
	delete(found, "")
	if s.names = slices.Sorted(maps.Keys(found)); !slices.ContainsFunc(s.names, func(n string) bool {
		return !slices.Contains(pascal, n)
	}) {
		s.names = pascal
	}
	s.classes = source.ClassNumbers(s.names)
	return nil
}

// read returns the objects of an image.
func (s *vocSet) read(path string) (out annotation, err error) {
	a, err := parseVOC(s.root, path)
	if err != nil {
		return out, err
	}
	if out.Width, err = sizeOf(a.Width); err == nil {
		out.Height, err = sizeOf(a.Height)
	}
	if err != nil {
		return out, source.ValueError("file %s: %w", filepath.ToSlash(path), err)
	}
	for i, o := range a.Objects {
		b, err := s.object(o)
		if err != nil {
			return out, source.ValueError("file %s: object %d: %w", filepath.ToSlash(path), i, err)
		}
		out.Objects = append(out.Objects, b)
	}
	return out, nil
}

// sizeOf parses width or height; 0 if it is missing.
func sizeOf(text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("size %q is not a number of pixels", source.Clip(text))
	}
	return n, nil
}

// object converts an object. Pascal VOC counts pixels from 1 and includes the last pixel. In corner coordinates,
// left and top are therefore 1 less, and right and bottom are the same number: the end of the last pixel.
func (s *vocSet) object(o vocObject) (b object, err error) {
	class, known := s.classes[strings.TrimSpace(o.Name)]
	if !known {
		return b, fmt.Errorf("name %q is none of the classes", source.Clip(o.Name))
	}
	b.Class = class
	for i, text := range []string{o.Box.Left, o.Box.Top, o.Box.Right, o.Box.Bottom} {
		if b.Box[i], err = strconv.ParseFloat(strings.TrimSpace(text), 64); err != nil {
			return b, fmt.Errorf("bndbox: %q is not a number", source.Clip(text))
		}
	}
	b.Box[0]--
	b.Box[1]--
	if b.Difficult, err = flagOf("difficult", o.Difficult); err == nil {
		b.Truncated, err = flagOf("truncated", o.Truncated)
	}
	return b, err
}

// flagOf parses 0 or 1; a missing flag is 0.
func flagOf(name, text string) (bool, error) {
	switch cmp.Or(strings.TrimSpace(text), "0") {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("%s is %q, neither 0 nor 1", name, source.Clip(text))
}
