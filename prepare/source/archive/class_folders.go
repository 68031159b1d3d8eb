package archive

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source"
)

// classFolders finds the classes of images in an archive. Classes are the folders below the root, or below the
// splits in it.
type classFolders struct {
	root    string // the folder that all images are in, "" or with a slash: "photos/"
	splits  bool   // all folders in the root have split names
	classes []string
}

// decideFolders makes a sample of each image, and classes of the folders.
func (a *archive) decideFolders(s *archiveScan) error {
	a.info.Unit, a.info.Count = "images", s.images
	a.info.Ignored = source.Ignored{Count: s.ignored.Count + s.others.Count,
		First: cmp.Or(s.others.First, s.ignored.First)}
	a.info.Fields = []source.Field{source.ContentField(source.ImagesName, "image")}
	dirs := slices.Sorted(maps.Keys(s.dirs))
	a.folders = newClassFolders(dirs)
	if a.folders.splits {
		a.info.Splits = a.folders.splitNames(dirs)
	}
	direct, nested := "", true
	classes := make(map[string]bool)
	for _, dir := range dirs {
		class, deeper := a.folders.class(dir)
		if class == "" {
			direct = dir
			continue
		}
		classes[class] = true
		nested = nested && deeper
	}
	a.folders.classes = slices.Sorted(maps.Keys(classes))
	switch {
	// Images in the root would have no class, and a record without a label does not exist.
	case direct != "" && len(classes) > 0:
		return fmt.Errorf("images next to folders (in %q next to %s); put every image into the folder of its class",
			strings.TrimPrefix(direct+"/", "./"), source.Enumerate(a.folders.classes, 5))
	case len(classes) > 0:
		f := source.LabelField(source.LabelsName, a.folders.classes)
		// The class is a folder in the name, so the fingerprint of names covers it.
		f.Derived = true
		a.info.Fields = append(a.info.Fields, f)
		if nested {
			a.info.Hints = append(a.info.Hints, fmt.Sprintf(
				"the classes are %s, and all their images are in folders further down; if those are the classes, unpack the "+
					"archive and give %s%s as the source",
				source.Enumerate(a.folders.classes, 5), a.folders.root, a.folders.classes[0]))
		}
	}
	return nil
}

// newClassFolders returns the class folders of an archive with images in dirs, which are sorted. If every folder in
// the root has a split name, the classes are one level deeper.
func newClassFolders(dirs []string) *classFolders {
	c := &classFolders{root: commonFolder(dirs)}
	c.splits = !slices.ContainsFunc(dirs, func(dir string) bool { return !source.IsSplit(c.split(dir + "/")) })
	return c
}

// splitNames returns the splits of the archive in their order.
func (c *classFolders) splitNames(dirs []string) (list []string) {
	for _, dir := range dirs {
		if name := c.split(dir + "/"); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, source.CompareSplits)
	return list
}

// split returns the folder in the root that an image is in.
func (c *classFolders) split(name string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(name, c.root), "/")
	return first
}

// class returns the class of the images in a folder, "" if the images are in no class folder, and whether the
// folder is below the folder of the class.
func (c *classFolders) class(dir string) (class string, deeper bool) {
	rest := strings.TrimPrefix(dir+"/", c.root)
	if dir == "." {
		return "", false
	}
	if c.splits {
		_, rest, _ = strings.Cut(rest, "/")
	}
	class, rest, _ = strings.Cut(rest, "/")
	return class, rest != ""
}

// label returns the class number of an image, -1 if there are no classes.
func (c *classFolders) label(name string) int64 {
	if len(c.classes) == 0 {
		return -1
	}
	class, _ := c.class(path.Dir(name))
	i, _ := slices.BinarySearch(c.classes, class)
	return int64(i)
}

// commonFolder returns the deepest folder that contains all images, with a slash, or "" for the archive's root. A
// single folder of images thus is the root and not a class.
func commonFolder(dirs []string) string {
	// path.Dir returns "." for names without a folder.
	if slices.Contains(dirs, ".") {
		return ""
	}
	common := strings.Split(dirs[0], "/")
	for _, d := range dirs[1:] {
		parts := strings.Split(d, "/")
		n := 0
		for n < len(common) && n < len(parts) && common[n] == parts[n] {
			n++
		}
		common = common[:n]
	}
	if len(common) == 0 {
		return ""
	}
	return strings.Join(common, "/") + "/"
}
