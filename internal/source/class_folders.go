package source

import (
	"fmt"
	"slices"
	"strings"
)

// classFolders are the classes of images in an archive: the folders below the one that all
// images lie in.
type classFolders struct {
	root    string // "" or "photos/"
	classes []string
}

// decideFolders makes images of an archive samples, and their folders classes.
func (a *archive) decideFolders(s *archiveScan) error {
	a.info.Unit, a.info.Count = "images", s.images
	a.info.Fields = []Field{content(imagesField, "image")}
	a.folders = &classFolders{root: commonFolder(slices.Sorted(keys(s.dirs)))}
	direct, nested := false, true
	classes := make(map[string]bool)
	for dir := range s.dirs {
		rest := strings.TrimPrefix(dir+"/", a.folders.root)
		if rest == "" || dir == "." {
			direct = true
			continue
		}
		class, deeper, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
		classes[class] = true
		nested = nested && deeper != ""
	}
	a.folders.classes = slices.Sorted(keys(classes))
	switch {
	case direct && len(classes) > 0:
		return fmt.Errorf("images beside folders (in %q beside %s); put every image into the folder of its class", a.folders.root, enumerate(a.folders.classes, 5))
	case len(classes) > 0:
		f := classLabel(labelsField, a.folders.classes)
		f.Derived = true
		a.info.Fields = append(a.info.Fields, f)
		if nested {
			a.info.Hints = append(a.info.Hints, fmt.Sprintf(
				"the classes are %s, and all their images lie in folders further down; if those are the classes, unpack the archive and give %s%s as the source",
				enumerate(a.folders.classes, 5), a.folders.root, a.folders.classes[0]))
		}
	}
	return nil
}

// label returns the number of an image's class, -1 without classes.
func (c *classFolders) label(name string) int64 {
	if len(c.classes) == 0 {
		return -1
	}
	class, _, _ := strings.Cut(strings.TrimPrefix(name, c.root), "/")
	i, _ := slices.BinarySearch(c.classes, class)
	return int64(i)
}

// commonFolder returns the folder that all of them lie in or are, with a slash, "" for the
// archive's root. A single folder of images is no class.
func commonFolder(dirs []string) string {
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
