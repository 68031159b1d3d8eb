package folder

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// leftOut collects data next to the images that would be left out: a table, files named like images, or lists that
// name images. They are probably labels, so Open fails and says how to read them.
type leftOut struct {
	data  string // first file that could be a source itself, such as a table
	named string // first file named like an image, with another extension
	image string // the image that it is named like
	count int    // number of files named like an image

	lists  string // first text that names an image near its beginning, such as labels.txt
	listed string // the image that it names
	read   int    // number of texts that were read
}

// maxRead limits the texts that are read: each image that they name costs a request in a bucket. The first texts of
// a folder stand for all others.
const maxRead = 20

// add considers the ignored files of the folder rel of the source dir.
func (l *leftOut) add(root *vfs.Root, dir, rel string, list listing) {
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
		} else if l.lists == "" && l.read < maxRead && isText(name) {
			l.read++
			if l.listed = imageIn(root, filepath.Join(dir, rel, name), dir); l.listed != "" {
				l.lists = slashed(rel, name)
			}
		}
	}
}

// isText reports whether the name of a file suggests a list of images or annotations: labels.txt, instances.json.
func isText(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".txt", ".lst", ".json", ".xml", ".yaml", ".yml":
		return true
	}
	return false
}

// imageIn returns the first existing image that the beginning of a text names, by a path relative to the folder of
// the text or to top; "" if the text names no existing image.
func imageIn(root *vfs.Root, path, top string) string {
	tried := 0
	for word := range strings.FieldsFuncSeq(string(source.ReadHead(root, path, 4096)), func(r rune) bool {
		return strings.ContainsRune(" \t\r\n,;|=\"'<>()[]{}", r)
	}) {
		if word = filepath.FromSlash(word); !source.IsImageName(word) || !filepath.IsLocal(word) {
			continue
		}
		for _, dir := range []string{filepath.Dir(path), top} {
			if info, err := root.Stat(filepath.Join(dir, word)); err == nil && info.Mode().IsRegular() {
				return filepath.ToSlash(word)
			}
		}
		if tried++; tried == 5 {
			break
		}
	}
	return ""
}

// err returns an error if data would be left out; nil if no data would be. unit is the word for samples in the
// message.
func (l *leftOut) err(root, unit string) error {
	switch {
	case l.count > 0:
		others := ""
		if l.count > 1 {
			others = fmt.Sprintf(", as would others, %d in all", l.count)
		}
		return fmt.Errorf("%s has the name of %s, and would be left out%s; labels, boxes and captions of images are read "+
			"from a csv or jsonl table that names the images, or from tar and zip archives; "+
			"--from imagefolder takes the %s alone", l.named, l.image, others, unit)
	case l.data != "":
		return fmt.Errorf("%s would be left out; if it names the images, with their labels or captions, give %s as the "+
			"source; --from imagefolder takes the %s alone",
			l.data, filepath.Join(root, filepath.FromSlash(l.data)), unit)
	case l.lists != "":
		return fmt.Errorf("%s names %s, and would be left out; labels, boxes and captions of images are read from a csv "+
			"or jsonl table that names the images; --from imagefolder takes the %s alone", l.lists, l.listed, unit)
	}
	return nil
}
