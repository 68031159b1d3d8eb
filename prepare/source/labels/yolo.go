package labels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// YOLO opens a YAML file, its folder, or a folder with images and labels. Images are sorted by split, then by path.
//
//	coco8/coco8.yaml                    path: ., train: images/train, val: images/val, names: {0: person, ...}
//	coco8/images/train/000000000009.jpg an image
//	coco8/labels/train/000000000009.txt its objects, a row each: 45 0.479492 0.688771 0.955609 0.5955
func YOLO(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := source.Files(path)
	if err != nil {
		return nil, err
	}
	s := &yoloSet{ctx: ctx, opts: opts, root: root, known: make(map[string]string)}
	if err := s.open(files[0]); err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	format := setFormat{Kind: "yolo", Path: path, Classes: s.config.classes, Splits: s.splits,
		Points: s.config.points}
	if format.Classes != nil {
		format.MaskClasses = append([]string{"background"}, format.Classes...)
	}
	format.Columns = []string{imagesColumn, boxesColumn, labelsColumn}
	if format.Points > 0 {
		format.Columns = append(format.Columns, keypointsColumn)
	}
	format.Default = slices.Clone(format.Columns)
	if format.Points == 0 {
		format.Columns = append(format.Columns, masksColumn, maskColumn)
	}
	return newSamples(root, format, imageList(s.images), opts, selection)
}

// yoloSet is the images of a set.
type yoloSet struct {
	ctx    context.Context
	opts   source.Options
	root   *vfs.Root
	dir    string // folder of the YAML file
	config yoloConfig
	splits []string
	images []annotatedImage
	known  map[string]string // split of each image by name
}

// open reads the YAML file at path or in the folder path. Without such a file, images and labels are found by the
// names of folders.
func (s *yoloSet) open(path string) error {
	s.dir = path
	info, err := s.root.Stat(path)
	if err != nil {
		return source.WithoutPath(err)
	}
	file := path
	if info.IsDir() {
		file = source.YOLOFile(s.root, path)
	} else {
		s.dir = filepath.Dir(path)
	}
	if file == "" {
		return s.openFolder()
	}
	if s.config, err = readConfig(s.root, file); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	for _, split := range s.config.splits {
		s.splits = append(s.splits, split.name)
		for _, place := range split.places {
			if err := s.add(split.name, s.base(), place); err != nil {
				return fmt.Errorf("%s: %s: %w", filepath.Base(file), split.name, err)
			}
		}
	}
	// A single split divides nothing, and its name would only be in the way.
	if len(s.splits) == 1 {
		s.splits = nil
		for i := range s.images {
			s.images[i].Split = ""
		}
	}
	return nil
}

// openFolder opens a folder of images and labels without a YAML file. Class names may be in classes.txt.
func (s *yoloSet) openFolder() error {
	entries, err := source.ReadDir(s.ctx, s.root, filepath.Join(s.dir, "images"))
	if err != nil {
		return errors.New("the folder has neither a YAML file with train and names, nor the folders images and labels")
	}
	// labelImg writes classes.txt beside the labels, others at the top.
	for _, name := range []string{filepath.Join(s.dir, "classes.txt"), filepath.Join(s.dir, "labels", "classes.txt")} {
		text, err := s.root.ReadFile(name, nil, source.MaxText)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
		}
		if err == nil && s.config.classes == nil {
			s.config.classes = strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
		}
	}
	var splits []string
	for _, e := range entries {
		if e.IsDir() && source.IsSplit(e.Name()) {
			splits = append(splits, e.Name())
		}
	}
	// Images may also be in the folder images itself.
	if len(splits) < 2 {
		return s.add("", s.dir, "images")
	}
	slices.SortFunc(splits, source.CompareSplits)
	s.splits = splits
	for _, split := range splits {
		if err := s.add(split, s.dir, filepath.Join("images", split)); err != nil {
			return err
		}
	}
	return nil
}

// add adds the images of place: a folder, or a file that lists images.
func (s *yoloSet) add(split, base, place string) error {
	path := filepath.FromSlash(place)
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	info, err := s.root.Stat(path)
	if rest, up := strings.CutPrefix(place, "../"); err != nil && up { // as Roboflow writes it, and Ultralytics reads it
		path = filepath.Join(base, filepath.FromSlash(rest))
		info, err = s.root.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s", path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, source.WithoutPath(err))
	}
	if info.IsDir() {
		return s.addFolder(split, path)
	}
	text, err := s.root.ReadFile(path, nil, source.MaxList)
	if err != nil {
		return fmt.Errorf("%s: %w", path, source.WithoutPath(err))
	}
	for line := range strings.Lines(string(text)) {
		if line = filepath.FromSlash(strings.TrimSpace(line)); line == "" {
			continue
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(filepath.Dir(path), line)
		}
		if err := s.addImage(split, line); err != nil {
			return err
		}
	}
	return nil
}

// addFolder adds the images in a folder and below it.
func (s *yoloSet) addFolder(split, dir string) error {
	before := len(s.images)
	err := eachFile(s.ctx, s.root, dir, func(path, _ string) error {
		if !source.IsImageName(path) {
			return nil
		}
		s.opts.Seen(1)
		return s.addImage(split, path)
	})
	if err == nil && len(s.images) == before {
		err = fmt.Errorf("%s holds no images", dir)
	}
	return err
}

// addImage adds an image. An image in two splits is an error: a model would be tested on images that it was trained
// on.
func (s *yoloSet) addImage(split, path string) error {
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		rel = path
	}
	name := filepath.ToSlash(rel)
	if other, twice := s.known[name]; twice {
		return fmt.Errorf("%s is listed twice, in %q and %q", name, other, split)
	}
	s.known[name] = split
	labels := labelFile(path)
	s.images = append(s.images, annotatedImage{
		Name: name, File: path, Split: split,
		Read: func(w, h int) (annotation, error) { return s.config.read(s.root, labels, w, h) },
	})
	return nil
}

// labelFile returns the file with the objects of an image, by the rule of Ultralytics: the last folder images
// becomes labels, and the extension .txt.
func labelFile(image string) string {
	const from, to = string(filepath.Separator) + "images" + string(filepath.Separator), string(filepath.Separator) +
		"labels" + string(filepath.Separator)
	path := strings.TrimSuffix(image, filepath.Ext(image)) + ".txt"
	if at := strings.LastIndex(path, from); at >= 0 {
		path = path[:at] + to + path[at+len(from):]
	}
	return path
}
