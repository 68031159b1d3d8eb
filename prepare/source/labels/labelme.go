package labels

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Labelme opens a folder with JSON files of LabelMe in it or below it. Folders at the top may be splits. Classes
// are the labels, sorted by name.
func Labelme(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	s := &labelmeSet{ctx: ctx, root: root, dir: path, seen: opts.Seen}
	format, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newSamples(root, format, imageList(s.images), opts, selection)
}

// labelmeSet is the JSON files of a folder.
type labelmeSet struct {
	ctx     context.Context
	root    *vfs.Root
	dir     string
	seen    func(int64)
	images  []annotatedImage
	classes map[string]int64
}

// open reads all JSON files, as only they have the names of labels.
func (s *labelmeSet) open() (format setFormat, err error) {
	labels, splits := make(map[string]bool), make(map[string]bool)
	err = eachFile(s.ctx, s.root, s.dir, func(path, rel string) error {
		if filepath.Ext(path) == ".json" {
			s.add(path, filepath.ToSlash(rel), labels, splits)
		}
		return nil
	})
	if err == nil && len(s.images) == 0 {
		err = errors.New("the folder has no JSON files of LabelMe")
	}
	if err != nil {
		return format, err
	}
	format = setFormat{Kind: "labelme", Path: s.dir, Classes: slices.Sorted(maps.Keys(labels)),
		Splits: sortSplits(s.images, splits)}
	s.classes = source.ClassNumbers(format.Classes)
	format.MaskClasses = append([]string{"background"}, format.Classes...)
	format.Default = []string{imagesColumn, boxesColumn, labelsColumn}
	format.Columns = append(slices.Clone(format.Default), masksColumn, maskColumn)
	return format, nil
}

// add adds a JSON file. A file that cannot be read becomes a bad sample, and does not stop the scan.
func (s *labelmeSet) add(path, name string, labels, splits map[string]bool) {
	s.seen(1)
	a, err := parseLabelme(s.root, path)
	img := annotatedImage{Name: name, Split: splitOf(name), File: path}
	if err != nil {
		img.Failed = err
	} else {
		img.File = a.image(path)
	}
	// Labels of a file that fails later are classes, too: classes must not depend on which images can be
	// decoded.
	for _, shape := range a.Shapes {
		labels[shape.Label] = true
	}
	splits[img.Split] = true
	img.Read = func(w, h int) (annotation, error) { return s.read(path) }
	s.images = append(s.images, img)
}

// read returns the objects of an image. LabelMe shows images as their EXIF orientation turns them, so the
// annotations are upright.
func (s *labelmeSet) read(path string) (out annotation, err error) {
	a, err := parseLabelme(s.root, path)
	if err != nil {
		return out, err
	}
	out.Width, out.Height, out.Upright = a.Width, a.Height, true
	for _, g := range a.groups() {
		o, err := labelmeObject(g)
		if err != nil {
			return out, err
		}
		o.Class = s.classes[g[0].Label]
		out.Objects = append(out.Objects, o)
	}
	return out, nil
}
