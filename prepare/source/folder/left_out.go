package folder

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/prepare/source"
)

// leftOut is the data beside images that a folder of images has no place for.
type leftOut struct {
	data  string // the first file that is a source itself, such as a table
	named string // the first that has the name of an image, and another extension
	image string // that image
	count int    // of those that have the name of an image
}

// add looks at what a folder holds.
func (l *leftOut) add(rel string, list listing) {
	if len(list.ignored) == 0 {
		return
	}
	images := make(map[string]string, 2*len(list.files)) // by name, and by name without extension
	for _, f := range list.files {
		images[f.name] = f.name
		images[stem(f.name)] = f.name
	}
	for _, name := range list.ignored {
		if image := images[stem(name)]; image != "" && filepath.Ext(name) != "" {
			if l.count++; l.named == "" {
				l.named, l.image = slashed(rel, name), image
			}
		} else if l.data == "" && source.IsData(strings.ToLower(name)) {
			l.data = slashed(rel, name)
		}
	}
}

func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// err returns the error for a folder of images, or of another unit, that holds other data.
func (l *leftOut) err(root, unit string) error {
	switch {
	case l.count > 0:
		others := ""
		if l.count > 1 {
			others = fmt.Sprintf(", as would others, %d in all", l.count)
		}
		return fmt.Errorf("%s has the name of %s, and would be left out%s; labels, boxes and texts of images are read from a csv or jsonl table "+
			"that names the images, or from tar and zip archives; --from imagefolder takes the %s alone", l.named, l.image, others, unit)
	case l.data != "":
		return fmt.Errorf("%s would be left out; if it names the images, with their labels or texts, give %s as the source; --from imagefolder takes the %s alone",
			l.data, filepath.Join(root, filepath.FromSlash(l.data)), unit)
	}
	return nil
}
