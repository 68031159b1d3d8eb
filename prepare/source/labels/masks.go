package labels

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Masks opens a folder of images and a folder of their masks, or images with masks next to them. A mask has the
// path and name of its image, with an optional suffix such as _mask. Folders at the top with split names are
// splits.
//
//	images/a.jpg, masks/a.png                                    folders beside each other
//	images/train/a.jpg, masks/train/a_mask.png                   with splits and a suffix
//	a.jpg, a_mask.png                                            in one folder
//	leftImg8bit/train/x/a_leftImg8bit.png, gtFine/train/x/a_gtFine_labelIds.png   Cityscapes
func Masks(ctx context.Context, root *vfs.Root, path string, opts source.Options, selection []column.Selection) (
	source.Source, error) {
	s := &maskSet{ctx: ctx, root: root, dir: path, seen: opts.Seen}
	format, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return newSamples(root, format, imageList(s.images), opts, selection)
}

// maskSet is the pairs of images and masks in a folder.
type maskSet struct {
	ctx    context.Context
	root   *vfs.Root
	dir    string
	seen   func(int64)
	images []annotatedImage
}

// open pairs masks with images. An image without a mask becomes a bad sample. Masks without an image are counted,
// reported and left out.
func (s *maskSet) open() (format setFormat, err error) {
	pairs := source.MaskPairs(s.root, s.dir)
	if pairs == nil {
		return format, errors.New("the folder has no pair of folders such as images and masks, and no masks next to " +
			"images, such as a_mask.png next to a.jpg")
	}
	format = setFormat{Kind: "maskfolder", Path: s.dir, MaskFiles: true}
	splits := make(map[string]bool)
	left := 0
	for _, p := range pairs {
		masks, err := s.masks(p)
		if err != nil {
			return format, err
		}
		// Only Cityscapes has a folder gtFine, and classes that are known without a file.
		if p.Masks == filepath.Join(s.dir, "gtFine") {
			format.MaskClasses = cityscapes
		}
		used, err := s.pair(p, masks, splits)
		if err != nil {
			return format, err
		}
		left += len(masks) - used
	}
	if left > 0 {
		format.Hints = []string{fmt.Sprintf("%d masks have no image; they are left out", left)}
	}
	format.Splits = sortSplits(s.images, splits)
	format.Columns = []string{imagesColumn, maskColumn}
	format.Default = format.Columns
	return format, nil
}

// maskSuffixes are what names of masks have after the name of the image. A longer suffix comes before its own end,
// and of several files of Cityscapes for an image the first suffix wins.
var maskSuffixes = []string{"_gtFine_labelTrainIds", "_gtFine_labelIds", "_segmentation", "_groundtruth", "_labelIds",
	"_labels", "_label", "_masks", "_mask", "_seg", "_gt",
	"-segmentation", "-masks", "-mask", "-labels", "-label", "-seg", "-gt", ".mask"}

// otherSuffixes are the suffixes of files of Cityscapes that are no masks of classes.
var otherSuffixes = []string{"_gtFine_color", "_gtFine_instanceIds", "_gtFine_instanceTrainIds"}

// maskKey returns the name of a mask without its suffix, and the position of the suffix in maskSuffixes, -1 for
// none.
func maskKey(rel string) (name string, suffix int) {
	name = strings.TrimSuffix(rel, filepath.Ext(rel))
	for i, s := range maskSuffixes {
		if short, has := strings.CutSuffix(name, s); has && filepath.Base(short) != "." && short != "" {
			return short, i
		}
	}
	return name, -1
}

// maskFile is the file of a mask and its position in maskSuffixes.
type maskFile struct {
	path   string
	suffix int
}

// masks returns the masks of a pair by the names of their images. Two masks of one image are an error, except for
// the files of Cityscapes.
func (s *maskSet) masks(p source.MaskPair) (map[string]maskFile, error) {
	found := make(map[string]maskFile)
	err := eachFile(s.ctx, s.root, p.Masks, func(_, rel string) error {
		name, suffix := maskKey(rel)
		// In a common folder, only a suffix tells a mask from an image.
		if !source.IsMaskName(rel) || p.Images == p.Masks && suffix < 0 {
			return nil
		}
		plain := strings.TrimSuffix(rel, filepath.Ext(rel))
		if slices.ContainsFunc(otherSuffixes, func(o string) bool { return strings.HasSuffix(plain, o) }) {
			return nil
		}
		have, twice := found[name]
		switch {
		// Cityscapes has several files for an image; the file with trainIds comes first.
		case !twice || strings.HasPrefix(plain, name+"_gtFine") && suffix < have.suffix:
			found[name] = maskFile{filepath.Join(p.Masks, rel), suffix}
		case !strings.HasPrefix(plain, name+"_gtFine"):
			return fmt.Errorf("%s and %s are both masks of %s", have.path, filepath.Join(p.Masks, rel), name)
		}
		return nil
	})
	return found, err
}

// pair adds the images of a pair, and returns the number of masks that belong to an image.
func (s *maskSet) pair(p source.MaskPair, masks map[string]maskFile, splits map[string]bool) (used int, err error) {
	err = eachFile(s.ctx, s.root, p.Images, func(file, rel string) error {
		if !source.IsImageName(rel) {
			return nil
		}
		name := strings.TrimSuffix(rel, filepath.Ext(rel))
		if _, suffix := maskKey(rel); p.Images == p.Masks && suffix >= 0 {
			return nil // a mask
		}
		// The names of Cityscapes' masks have another suffix in its place.
		name = strings.TrimSuffix(name, "_leftImg8bit")
		inside, err := filepath.Rel(s.dir, file)
		if err != nil {
			return err
		}
		img := annotatedImage{Name: filepath.ToSlash(inside), File: file, Split: p.Split}
		if p.Split == "" {
			img.Split = splitOf(filepath.ToSlash(rel))
		}
		splits[img.Split] = true
		m, there := masks[name]
		if there {
			used++
		}
		img.Mask = func(buf []byte) ([]byte, error) {
			if !there {
				return buf, source.ValueError("the image has no mask: %s is not there, also with a suffix such as _mask",
					filepath.ToSlash(filepath.Join(p.Masks, name+".png")))
			}
			return m.read(s.root, buf)
		}
		s.images = append(s.images, img)
		s.seen(1)
		return nil
	})
	return used, err
}

// read returns the file of a mask. Files with the label ids of Cityscapes are converted to trainIds.
func (m maskFile) read(root *vfs.Root, buf []byte) ([]byte, error) {
	b, err := readFile(root, m.path, buf)
	if err == nil && m.suffix >= 0 && maskSuffixes[m.suffix] == "_gtFine_labelIds" {
		b, err = trainIDs(b)
		err = inFile(m.path, err)
	}
	return b, err
}
