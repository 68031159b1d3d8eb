package labels

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// imageRecord is an element of "images".
type imageRecord struct {
	ID       int64   `json:"id"`
	FileName string  `json:"file_name"`
	Width    float64 `json:"width"` // some tools write 640.0
	Height   float64 `json:"height"`
}

// cocoCategory is an element of "categories".
type cocoCategory struct {
	ID        int64    `json:"id"`
	Name      string   `json:"name"`
	Keypoints []string `json:"keypoints"`
}

// cocoSpan is the place of an annotation in its file. Annotations are read together with their image, as all
// annotations together can be gigabytes.
type cocoSpan struct {
	at   int64
	size int32
}

// cocoFile is an open file of annotations.
type cocoFile struct {
	vfs.File
	name  string
	dir   string // folder of its images
	split string
	stray strayCount
}

// strayCount counts annotations of images that the file does not list.
type strayCount struct {
	count int
	image int64 // smallest id of an image that has annotations and is not listed
}

// cocoFound is the result of a pass over a file.
type cocoFound struct {
	images      []imageRecord
	categories  []cocoCategory
	annotations map[int64][]cocoSpan // by image id
}

func openCOCO(ctx context.Context, root *vfs.Root, name string) (*cocoFile, error) {
	f, err := source.OpenUntil(ctx, root, name)
	if err != nil {
		return nil, err
	}
	return &cocoFile{File: f, name: name}, nil
}

// hints returns sentences about annotations that were left out.
func (f *cocoFile) hints() []string {
	if f.stray.count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d annotations are of images that the file does not list, such as image %d; they "+
		"are left out", filepath.Base(f.name), f.stray.count, f.stray.image)}
}

// scan makes a pass over the file. It keeps images and categories, and of annotations only their places.
func (f *cocoFile) scan(seen func(int64)) (*cocoFound, error) {
	out := &cocoFound{annotations: make(map[int64][]cocoSpan)}
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	if err := delimiter(d, '{'); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, source.WithoutPath(err)
		}
		switch key {
		case "images":
			err = eachElement(d, func(text json.RawMessage, _ int64) error {
				var img imageRecord
				err := json.Unmarshal(text, &img)
				out.images = append(out.images, img)
				seen(1)
				return err
			})
		case "annotations":
			err = eachElement(d, func(text json.RawMessage, at int64) error {
				var a struct {
					Image int64 `json:"image_id"`
				}
				err := json.Unmarshal(text, &a)
				out.annotations[a.Image] = append(out.annotations[a.Image], cocoSpan{at, int32(len(text))})
				return err
			})
		case "categories":
			err = eachElement(d, func(text json.RawMessage, _ int64) error {
				var c cocoCategory
				err := json.Unmarshal(text, &c)
				out.categories = append(out.categories, c)
				return err
			})
		default:
			var other json.RawMessage
			// info, licenses and keys of other programs.
			err = d.Decode(&other)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", key, source.WithoutPath(err))
		}
	}
	if err := delimiter(d, '}'); err != nil {
		return nil, err
	}
	if len(out.images) == 0 {
		return nil, errors.New("lists no images; an annotation file of COCO has images, annotations and categories")
	}
	f.countStray(out)
	return out, nil
}

// countStray counts the annotations of images that are not listed.
func (f *cocoFile) countStray(out *cocoFound) {
	listed := make(map[int64]bool, len(out.images))
	for _, img := range out.images {
		listed[img.ID] = true
	}
	for id, list := range out.annotations {
		if listed[id] {
			continue
		}
		if f.stray.count == 0 || id < f.stray.image {
			f.stray.image = id
		}
		f.stray.count += len(list)
	}
}

// delimiter reads a bracket or brace. The file is read token by token and never as a whole, as files of COCO have
// hundreds of megabytes.
func delimiter(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("is not JSON: %w", source.WithoutPath(err))
	}
	if t != want {
		return fmt.Errorf("is not an annotation file of COCO: %v where %v is expected", t, want)
	}
	return nil
}

// maxElement limits an element of a list, in bytes.
const maxElement = 64 << 20

// eachElement calls f with each element of an array and its position in the file. The memory of text is reused.
func eachElement(d *json.Decoder, f func(text json.RawMessage, at int64) error) error {
	if err := delimiter(d, '['); err != nil {
		return err
	}
	var text json.RawMessage
	for i := 0; d.More(); i++ {
		err := d.Decode(&text)
		if err == nil && len(text) > maxElement {
			err = fmt.Errorf("has %d bytes, more than %d", len(text), maxElement)
		}
		if err == nil {
			err = f(text, d.InputOffset()-int64(len(text)))
		}
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return delimiter(d, ']')
}

// lookedAt is the number of images that are looked up in a folder to find out whether it has the images.
const lookedAt = 20

// imageFolder returns the folder of the images, which the file does not name: next to the file, below it, or named
// after it, such as val2017 for annotations/instances_val2017.json. Of the folders inside the source, it takes the
// folder with the most of the first images.
func (f *cocoFile) imageFolder(root *vfs.Root, images []imageRecord) (string, error) {
	here := filepath.Dir(f.name)
	stem := strings.TrimSuffix(filepath.Base(f.name), ".json")
	_, split, _ := strings.Cut(stem, "_")
	up := filepath.Dir(here)
	best, most := "", 0
	tried := []string{filepath.Join(up, split), filepath.Join(up, "images", split), filepath.Join(up, "images"),
		filepath.Join(here, "images"), filepath.Join(here, stem), here, up}
	for _, dir := range tried {
		if !root.Inside(dir) {
			continue
		}
		n := 0
		for _, img := range images[:min(lookedAt, len(images))] {
			if !filepath.IsLocal(filepath.FromSlash(img.FileName)) {
				continue
			}
			if info, err := root.Stat(filepath.Join(dir, filepath.FromSlash(img.FileName))); err == nil &&
				info.Mode().IsRegular() {
				n++
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("%s: %w", dir, source.WithoutPath(err))
			}
		}
		// Of several folders with the same number, the first folder of the list is taken.
		if n > most {
			best, most = dir, n
		}
	}
	if most == 0 {
		return "", fmt.Errorf("its images, such as %q, are in none of %s; put them into one of these folders, or give "+
			"another annotation file alone",
			images[0].FileName, strings.Join(tried[:5], ", "))
	}
	return best, nil
}

// prefix returns the prefix of file names in the names of samples, which keeps images of different folders apart.
func (f *cocoFile) prefix() string { return filepath.Base(f.dir) }
