package folder

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/penstock/penstock/prepare/source"
)

// scanSplits lists folders of splits. Either all split folders have class folders, or no split folder has any.
func (s *Folder) scanSplits(ctx context.Context, splits []string) error {
	// Records are stored in this order: training first.
	slices.SortFunc(splits, source.CompareSplits)
	s.info.Splits = splits
	var plain, classed []string
	inside := make([][]string, len(splits))
	all := make(map[string]bool)
	for i, split := range splits {
		l, err := s.list(split)
		if err != nil {
			return err
		}
		if len(l.files) > 0 && len(l.folders) > 0 {
			return s.beside(split, l)
		}
		s.ignore(split, l)
		if inside[i] = l.folders; len(l.folders) > 0 {
			classed = append(classed, split)
			addAll(all, l.folders)
			continue
		}
		plain = append(plain, split)
		if len(l.files) > 0 {
			s.folders = append(s.folders, folder{rel: split, split: split})
			s.info.Count += int64(len(l.files))
		}
	}
	switch {
	case len(classed) == 0:
		return s.checkSplits()
	case len(plain) > 0:
		return fmt.Errorf("the images in %s are in class folders, those in %s in none; make a dataset of each",
			source.Enumerate(classed, 3), source.Enumerate(plain, 3))
	}
	return s.scanSplitClasses(ctx, inside, slices.Sorted(maps.Keys(all)))
}

// halfSplits returns an error if two or more folders have names of splits and other folders have not. As
// classes, the names of the splits would be labels that say which split an image is in.
func halfSplits(names []string) error {
	others := slices.DeleteFunc(slices.Clone(names), source.IsSplit)
	splits := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !source.IsSplit(n) })
	if len(splits) < 2 || len(others) == 0 {
		return nil
	}
	return fmt.Errorf("the folders %s have names of splits, and %s do not; move the others elsewhere, or, if all are "+
		"classes, put them into one folder called train",
		source.Enumerate(splits, 3), source.Enumerate(others, 3))
}

// addAll adds names to a set.
func addAll(set map[string]bool, names []string) {
	for _, n := range names {
		set[n] = true
	}
}

// scanSplitClasses lists the class folders in each split. classes are the classes of all splits together, so that a
// label means the same in each.
func (s *Folder) scanSplitClasses(ctx context.Context, inside [][]string, classes []string) error {
	filled := make(map[string]bool)
	for i, split := range s.info.Splits {
		for _, class := range inside[i] {
			// classes are sorted, and have the class of every split.
			label, _ := slices.BinarySearch(classes, class)
			before := s.info.Count
			if _, err := s.scanClass(ctx, int64(label), split, class); err != nil {
				return err
			}
			filled[class] = filled[class] || s.info.Count > before
		}
	}
	if err := s.setClasses(classes, filled); err != nil {
		return err
	}
	return s.checkSplits()
}

// setClasses sets the class names. filled has the classes with images: a class without any is an error, since it is
// probably a mistake.
func (s *Folder) setClasses(classes []string, filled map[string]bool) error {
	for _, class := range classes {
		if !utf8.ValidString(class) {
			return fmt.Errorf("the name of class folder %q is not UTF-8; rename it", class)
		}
	}
	s.classes = classes
	label := source.LabelField(source.LabelsName, classes)
	label.Derived = true
	s.info.Fields = append(s.info.Fields, label)
	empty := slices.DeleteFunc(slices.Clone(classes), func(c string) bool { return filled[c] })
	if s.info.Count > 0 && len(empty) > 0 {
		return fmt.Errorf("found no images for the classes %s; remove these folders or fill them",
			source.Enumerate(empty, 10))
	}
	return nil
}

// checkSplits returns an error if a split has no images, and other splits have some.
func (s *Folder) checkSplits() error {
	for _, split := range s.info.Splits {
		if s.info.Count > 0 && !slices.ContainsFunc(s.folders, func(f folder) bool { return f.split == split }) {
			return fmt.Errorf("found no images in %s; remove this folder or fill it", split)
		}
	}
	return nil
}

// beside returns the error for images next to class folders.
func (s *Folder) beside(rel string, l listing) error {
	return fmt.Errorf("images next to folders (%s next to %s%c); put every image into the folder of its class, or the "+
		"folders elsewhere",
		slashed(rel, l.files[0].name), slashed(rel, l.folders[0]), filepath.Separator)
}
