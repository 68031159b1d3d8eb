package labels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// VOC opens a folder with Annotations and JPEGImages, or with XML files next to their images, which may be in
// folders of splits. The images are the images in the lists of ImageSets/Main, or if --fields selects no
// objects, of ImageSets/Segmentation: only some images have masks.
//
//	VOC2012/Annotations/2007_000027.xml        objects of an image
//	VOC2012/JPEGImages/2007_000027.jpg         the image
//	VOC2012/SegmentationClass/2007_000027.png  class of each pixel, for some images
//	VOC2012/ImageSets/Main/train.txt           names of images, one in each line
func VOC(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	s := &vocSet{ctx: ctx, root: root, dir: path, seen: opts.Seen, dirs: make(map[string]map[string]string)}
	format, err := s.open(selection)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newSamples(root, format, imageList(s.images), opts, selection)
}

// vocSet is the images of a folder.
type vocSet struct {
	ctx     context.Context
	root    *vfs.Root
	dir     string
	seen    func(int64)
	dirs    map[string]map[string]string // by folder: the files of images by name without extension
	images  []annotatedImage
	splits  []string
	classes map[string]int64
	names   []string // of the classes
	masks   bool     // images have files with the class of each pixel
}

// objectColumns are the columns that come from the XML files.
var objectColumns = []string{boxesColumn, labelsColumn, difficultColumn, truncatedColumn}

// open lists the images of one or several years. Class names are looked for only if a field needs objects, as that
// reads every XML file.
func (s *vocSet) open(selection []column.Selection) (format setFormat, err error) {
	annotated := len(selection) == 0
	for _, w := range selection {
		annotated = annotated || slices.Contains(objectColumns, w.Column)
	}
	folders := source.VOCFolders(s.root, s.dir)
	if len(folders) == 0 {
		return format, errors.New("the folder has no XML files of annotations: neither Annotations and JPEGImages, nor " +
			"a.xml next to a.jpg")
	}
	s.masks = source.IsDir(s.root, filepath.Join(s.dir, "SegmentationClass"))
	var files []string // of annotations
	for _, f := range folders {
		list, err := s.list(f, annotated)
		if err != nil {
			return format, err
		}
		for _, e := range list {
			files = append(files, e.xml)
			s.images = append(s.images, s.image(e))
		}
	}
	if annotated {
		err = s.findClasses(files)
	}
	format = setFormat{Kind: "voc", Path: s.dir, Classes: s.names, Splits: s.splits, MaskFiles: s.masks,
		MaskClasses: append([]string{"background"}, pascal...)}
	format.Default = append([]string{imagesColumn}, objectColumns...)
	if format.Columns = slices.Clone(format.Default); s.masks {
		format.Columns = append(format.Columns, maskColumn)
	}
	return format, err
}

// vocEntry is an image by the name that its image, annotation and mask share.
type vocEntry struct {
	source.VOCFolder
	name, xml, split string
}

// list returns the images of a folder: the images in its lists, or without lists the images with annotations.
func (s *vocSet) list(f source.VOCFolder, annotated bool) (list []vocEntry, err error) {
	sets, err := s.imageSets(f, annotated)
	if err != nil {
		return nil, err
	}
	if len(sets) > 0 {
		for _, set := range sets {
			for _, name := range set.names {
				list = append(list, vocEntry{f, name, filepath.Join(f.Annotations, name+".xml"), set.split})
			}
		}
		return list, nil
	}
	for _, file := range s.root.Glob(f.Annotations, "*.xml") {
		list = append(list, vocEntry{f, strings.TrimSuffix(filepath.Base(file), ".xml"), file, f.Split})
	}
	if f.Split != "" && !slices.Contains(s.splits, f.Split) {
		s.splits = append(s.splits, f.Split)
	}
	return list, err
}

// imageSet is a list of the names of images.
type imageSet struct {
	split string
	names []string
}

// imageSets reads the lists train, val and test of ImageSets, or trainval if none of the three exists. A single
// list is no split. An image in two lists is an error: a model would be tested on images that it was trained on.
func (s *vocSet) imageSets(f source.VOCFolder, annotated bool) (sets []imageSet, err error) {
	dir := filepath.Join(s.dir, "ImageSets", "Main")
	if !annotated {
		dir = filepath.Join(s.dir, "ImageSets", "Segmentation")
	}
	for _, split := range []string{"train", "val", "test"} {
		names, err := linesOf(s.root, filepath.Join(dir, split+".txt"))
		if err != nil {
			return nil, err
		}
		if names != nil {
			sets = append(sets, imageSet{split, names})
		}
	}
	if sets == nil {
		names, err := linesOf(s.root, filepath.Join(dir, "trainval.txt"))
		if names == nil || err != nil {
			return nil, err
		}
		return []imageSet{{"", names}}, nil
	}
	// A single list says which images are used, and divides nothing.
	if len(sets) == 1 {
		sets[0].split = ""
		return sets, nil
	}
	seen := make(map[string]string)
	for _, set := range sets {
		for _, name := range set.names {
			if other, twice := seen[name]; twice {
				return nil, fmt.Errorf("%s: %q is in the lists %s and %s", dir, name, other, set.split)
			}
			seen[name] = set.split
		}
		s.splits = append(s.splits, set.split)
	}
	return sets, nil
}

// linesOf returns the first word of each line of a file; nil if the file does not exist. Lists of one class have a
// number after each name.
func linesOf(root *vfs.Root, path string) (list []string, err error) {
	text, err := root.ReadFile(path, nil, source.MaxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, source.WithoutPath(err))
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 {
			if !filepath.IsLocal(words[0]) {
				return nil, fmt.Errorf("%s: line %d leads out of the folder", path, len(list)+1)
			}
			list = append(list, words[0])
		}
	}
	return list, err
}

// image returns the image of an entry. An image that does not exist becomes a bad sample under its usual name.
func (s *vocSet) image(e vocEntry) annotatedImage {
	file := filepath.Join(e.Images, e.name+".jpg") // where it should be, if it is nowhere
	if name, ok := s.files(e.Images)[e.name]; ok {
		file = filepath.Join(e.Images, name)
	}
	rel, err := filepath.Rel(s.dir, file)
	if err != nil {
		rel = path.Base(file)
	}
	img := annotatedImage{
		Name: filepath.ToSlash(rel), File: file, Split: e.split,
		Read: func(int, int) (annotation, error) { return s.read(e.xml) },
	}
	if s.masks {
		img.Mask = func(buf []byte) ([]byte, error) {
			return readFile(s.root, filepath.Join(s.dir, "SegmentationClass", e.name+".png"), buf)
		}
	}
	return img
}

// files returns the image files of a folder by name without extension. VOC does not say the extension, and a look
// at each possible name would cost many requests in a bucket.
func (s *vocSet) files(dir string) map[string]string {
	if found, ok := s.dirs[dir]; ok {
		return found
	}
	found := make(map[string]string)
	// One listing for all images of a folder.
	entries, _ := source.ReadDir(s.ctx, s.root, dir) // what is missing is a bad sample
	for _, e := range entries {
		if source.IsImageName(e.Name()) {
			found[strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))] = e.Name()
		}
	}
	s.dirs[dir] = found
	return found
}
