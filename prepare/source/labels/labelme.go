package labels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Labelme opens a folder of JSON files, also in folders. Those at the top may be splits. Classes are the labels, by name.
func Labelme(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	s := &labelmeSet{ctx: ctx, root: root, dir: path, seen: opts.Seen, classes: make(map[string]int64)}
	format, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newSamples(root, format, imageList(s.images), opts, selection)
}

// labelmeSet is the contents of a folder.
type labelmeSet struct {
	ctx     context.Context
	root    *vfs.Root
	dir     string
	seen    func(int64)
	images  []annotatedImage
	classes map[string]int64
}

// open reads all JSON files of the folder for the names of labels, as LabelMe has no list of classes. The folders at
// the top are splits only if there are several and all files are in one of them.
func (s *labelmeSet) open() (format setFormat, err error) {
	labels, splits := make(map[string]bool), make(map[string]bool)
	err = s.root.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return source.WithoutPath(err)
		case s.ctx.Err() != nil:
			return context.Cause(s.ctx)
		case e.IsDir() || source.IsHidden(e.Name()) || filepath.Ext(e.Name()) != ".json":
			return nil
		}
		return s.add(path, labels, splits)
	})
	if err == nil && len(s.images) == 0 {
		err = errors.New("the folder has no JSON files of LabelMe")
	}
	if err != nil {
		return format, err
	}
	format = setFormat{Kind: "labelme", Path: s.dir, Classes: slices.Sorted(maps.Keys(labels)),
		Splits: slices.Collect(maps.Keys(splits))}
	for i, name := range format.Classes {
		s.classes[name] = int64(i)
	}
	if len(format.Splits) < 2 || splits[""] {
		format.Splits = nil
		for i := range s.images {
			s.images[i].Split = ""
		}
	}
	slices.SortFunc(format.Splits, source.CompareSplits)
	slices.SortStableFunc(s.images, func(a, b annotatedImage) int { return source.CompareSplits(a.Split, b.Split) })
	format.MaskClasses = append([]string{"background"}, format.Classes...)
	format.Default = []string{imagesColumn, boxesColumn, labelsColumn}
	format.Columns = append(slices.Clone(format.Default), masksColumn, maskColumn)
	return format, nil
}

// add takes a JSON file. One that cannot be read will be a bad sample.
func (s *labelmeSet) add(path string, labels, splits map[string]bool) error {
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		return err
	}
	s.seen(1)
	split := ""
	if first, _, deeper := strings.Cut(filepath.ToSlash(rel), "/"); deeper && source.IsSplit(first) {
		split = first
	}
	a, err := parseLabelme(s.root, path)
	img := annotatedImage{Name: filepath.ToSlash(rel), Split: split, File: path}
	if err != nil {
		img.Failed = err
	} else {
		img.File = a.image(path)
	}
	for _, shape := range a.Shapes {
		labels[shape.Label] = true
	}
	splits[split] = true
	img.Read = func(w, h int) (annotation, error) { return s.read(path) }
	s.images = append(s.images, img)
	return nil
}

// read returns the objects of an image.
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
