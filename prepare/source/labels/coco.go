package labels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// COCO opens annotation files of COCO, or the folder with such files. The images of a file are sorted by id, and
// the annotations of an image have the order of the file, as in pycocotools. Classes are the categories sorted by
// id, numbered without gaps.
func COCO(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := source.Files(path)
	if err != nil {
		return nil, err
	}
	if source.IsDir(root, files[0]) {
		if files = source.COCOFiles(root, files[0]); len(files) == 0 {
			return nil, fmt.Errorf("source %s: the folder has no annotations/instances_*.json and no _annotations.coco.json; "+
				"give the file of annotations", path)
		}
	}
	s := &cocoSet{root: root, categories: make(map[int64]cocoCategory)}
	format, err := s.open(ctx, path, files, opts)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, errors.Join(err, s.Close()))
	}
	return newSamples(root, format, s, opts, selection)
}

// cocoSet is the images of all files.
type cocoSet struct {
	root       *vfs.Root
	files      []*cocoFile
	entries    []cocoEntry
	categories map[int64]cocoCategory
	classes    map[int64]int64 // class number by category id
	points     int             // keypoints of an object; 0 for none
}

// cocoEntry is an image with the places of its annotations.
type cocoEntry struct {
	file *cocoFile
	imageRecord
	annotations []cocoSpan
}

// open makes a pass over each file, in the order of their splits, and describes the set.
func (s *cocoSet) open(ctx context.Context, path string, files []string, opts source.Options) (format setFormat,
	err error) {
	splits := cocoSplits(files)
	slices.SortStableFunc(files, func(a, b string) int { return source.CompareSplits(splits.Of[a], splits.Of[b]) })
	known := make(map[string]int64)
	for _, name := range files {
		f, err := openCOCO(ctx, s.root, name)
		if err != nil {
			return format, fmt.Errorf("%s: %w", filepath.Base(name), source.WithoutPath(err))
		}
		f.split = splits.Of[name]
		s.files = append(s.files, f)
		if err := s.add(f, known, opts); err != nil {
			return format, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		format.Hints = append(format.Hints, f.hints()...)
	}
	s.classes = make(map[int64]int64)
	// Category ids of COCO have gaps: 90 is the largest of 80. Labels have no gaps, as loss functions index by
	// them.
	ids := make([]int64, 0, len(s.categories))
	for id := range s.categories {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for i, id := range ids {
		s.classes[id] = int64(i)
		format.Classes = append(format.Classes, s.categories[id].Name)
	}
	uniqueNames(format.Classes, ids)
	format.MaskClasses = append([]string{"background"}, format.Classes...)
	format.Kind, format.Path, format.Splits, format.Points = "coco", path, splits.Names, s.points
	format.Columns = []string{imagesColumn, boxesColumn, labelsColumn, areaColumn, crowdColumn, imageIDColumn}
	if s.points > 0 {
		format.Columns = append(format.Columns, keypointsColumn)
	}
	format.Default = slices.Clone(format.Columns)
	// Masks are made only on request, as every object has to be drawn.
	format.Columns = append(format.Columns, masksColumn, maskColumn)
	return format, nil
}

// uniqueNames appends its id to each category name that is not unique.
func uniqueNames(names []string, ids []int64) {
	count := make(map[string]int)
	for _, n := range names {
		count[n]++
	}
	for i, n := range names {
		if count[n] > 1 {
			names[i] = fmt.Sprintf("%s %d", n, ids[i])
		}
	}
}

// add adds the images and categories of a file. known has the ids of all images by name. Files may share categories
// but not contradict each other.
func (s *cocoSet) add(f *cocoFile, known map[string]int64, opts source.Options) error {
	found, err := f.scan(opts.Seen)
	if err != nil {
		return err
	}
	for _, c := range found.categories {
		if have, is := s.categories[c.ID]; is && have.Name != c.Name {
			return fmt.Errorf("category %d is called %q and %q", c.ID, have.Name, c.Name)
		}
		s.categories[c.ID] = c
		if n := len(c.Keypoints); n > 0 {
			if s.points != 0 && s.points != n {
				return fmt.Errorf("categories have %d and %d keypoints; a dataset has one number of them", s.points, n)
			}
			s.points = n
		}
	}
	slices.SortStableFunc(found.images, func(a, b imageRecord) int { return cmp.Compare(a.ID, b.ID) })
	if f.dir, err = f.imageFolder(s.root, found.images); err != nil {
		return err
	}
	for i, img := range found.images {
		if i > 0 && found.images[i-1].ID == img.ID {
			return fmt.Errorf("two images have the id %d", img.ID)
		}
		// file_name is a stranger's: ../../x must not be opened.
		if !filepath.IsLocal(filepath.FromSlash(img.FileName)) {
			return fmt.Errorf("image %d: file_name %q leads out of the folder", img.ID, img.FileName)
		}
		name := path.Join(f.prefix(), filepath.ToSlash(img.FileName))
		if other, twice := known[name]; twice {
			return fmt.Errorf("images %d and %d have the file_name %q", other, img.ID, img.FileName)
		}
		known[name] = img.ID
		s.entries = append(s.entries, cocoEntry{f, img, found.annotations[img.ID]})
	}
	return nil
}

// cocoSplits returns the splits of files by the words of their names or folders, without digits: val of
// instances_val2017.json.
func cocoSplits(files []string) source.FileSplits {
	plain := make([]string, len(files))
	for i, f := range files {
		dir, name := filepath.Split(f)
		name = strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, strings.TrimSuffix(name, ".json"))
		plain[i] = dir + name
	}
	s := source.SplitsOfFiles(plain)
	of := make(map[string]string, len(files))
	for i, f := range files {
		of[f] = s.Of[plain[i]]
	}
	return source.FileSplits{Names: s.Names, Of: of}
}

// Len implements imageSource.
func (s *cocoSet) Len() int { return len(s.entries) }

// Image implements imageSource.
func (s *cocoSet) Image(i int) annotatedImage {
	e := &s.entries[i]
	return annotatedImage{
		Name:  path.Join(e.file.prefix(), filepath.ToSlash(e.FileName)),
		File:  filepath.Join(e.file.dir, filepath.FromSlash(e.FileName)),
		Split: e.file.split, ID: e.ID,
		Read: func(int, int) (annotation, error) {
			list, err := s.objects(e)
			return annotation{Objects: list, Width: int(e.Width), Height: int(e.Height)}, err
		},
	}
}

// Close implements imageSource.
func (s *cocoSet) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}
