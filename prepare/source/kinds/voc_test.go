package kinds

import (
	"image"
	"image/color"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source"
)

const vocPart = `<part><name>head</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></part>`

func vocXML(objects string) string {
	return `<annotation><folder>VOC</folder><filename>whatever.jpg</filename><size><width>6</width><height>5</height><depth>3</depth></size>` + objects + `</annotation>`
}

func vocObject(name, box, more string) string {
	b := strings.Fields(box)
	return `<object><name>` + name + `</name>` + more + `<bndbox><ymin>` + b[1] + `</ymin><xmax>` + b[2] + `</xmax><xmin>` + b[0] + `</xmin><ymax>` + b[3] + `</ymax></bndbox></object>`
}

func TestVOC(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Annotations/a.xml", vocXML(vocObject("dog", "1 1 6 5", "<pose>Left</pose><truncated>1</truncated>")+vocObject("cat", "2.5 2 3 4", vocPart+"<difficult>1</difficult>")))
	put(t, root, "Annotations/b.xml", vocXML(""))
	put(t, root, "Annotations/c.xml", vocXML(vocObject("dog", "1 1 x 5", "")))
	put(t, root, "Annotations/d.xml", "<annotation><object>")
	put(t, root, "Annotations/e.xml", strings.Replace(vocXML(""), "<width>6<", "<width>5<", 1))
	put(t, root, "Annotations/f.xml", vocXML(vocObject("cat", "9 1 9 5", "")))
	put(t, root, "ImageSets/Main/train.txt", "a\nb\n\n")
	put(t, root, "ImageSets/Main/val.txt", "c\nd\ne\nf\ngone 1\n")
	put(t, root, "ImageSets/Main/trainval.txt", "a\nb\nc\nd\n")
	put(t, root, "ImageSets/Main/cat_train.txt", "a 1\nb -1\n")
	put(t, root, "ImageSets/Segmentation/trainval.txt", "b\na\n")
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		put(t, root, "JPEGImages/"+name+".png", picture(t, 6, 5))
	}
	mask := image.NewPaletted(image.Rect(0, 0, 6, 5), make(color.Palette, 256))
	for i := range mask.Palette {
		mask.Palette[i] = color.Gray{uint8(i * 7)}
	}
	mask.Pix[7], mask.Pix[8] = 15, 255
	put(t, root, "SegmentationClass/b.png", pngOf(t, mask))
	file := func(name string) string { return "file " + filepath.ToSlash(filepath.Join(root, name)) + ": " }
	info := checkSamples(t, root, "voc", "",
		"JPEGImages/a.png (train) 6x5 boxes=[0 0 6 5 1.5 1 3 4] labels=[11 7] difficult=[0 1] truncated=[1 0]",
		"JPEGImages/b.png (train) 6x5 boxes=[] labels=[] difficult=[] truncated=[]",
		"JPEGImages/c.png: "+file("Annotations/c.xml")+`object 0: bndbox: "x" is not a number`,
		"JPEGImages/d.png: "+file("Annotations/d.xml")+"XML syntax error on line 1: unexpected EOF",
		"JPEGImages/e.png: the image is 6x5 pixels, and 5x5 by its annotations",
		"JPEGImages/f.png: box 0 is [8 0 9 5]: it is outside of the image, which is 6x5 pixels",
		"JPEGImages/gone.jpg: "+file("JPEGImages/gone.jpg")+"no such file or directory",
	)
	if names := classesOf(info); len(names) != 20 || names[11] != "dog" || names[14] != "person" {
		t.Errorf("classes %q", names)
	}
	checkSamples(t, root, "voc", "images,mask",
		"JPEGImages/b.png 6x5 mask|000000|015255000|000000|000000|000000",
		"JPEGImages/a.png: mask: "+file("SegmentationClass/a.png")+"no such file or directory",
	)
}

// XML files next to images, in folders that are splits, of other classes than Pascal's.
func TestVOCBesideImages(t *testing.T) {
	root := t.TempDir()
	for _, split := range []string{"train", "valid"} {
		put(t, root, split+"/a.xml", vocXML(vocObject("dog", "1 1 6 5", "")+vocObject("zebra", "1 1 2 2", "")))
		put(t, root, split+"/a.png", picture(t, 6, 5))
	}
	info := checkSamples(t, root, "voc", "labels", "train/a.png (train) labels=[0 1]", "valid/a.png (valid) labels=[0 1]")
	if got := classesOf(info); !slices.Equal(got, []string{"dog", "zebra"}) {
		t.Errorf("classes %q", got)
	}
	checkSamples(t, filepath.Join(root, "train"), "voc", "", "a.png 6x5 boxes=[0 0 6 5 0 0 2 2] labels=[0 1] difficult=[0 0] truncated=[0 0]")
	if got := openError(t, root, source.Options{Fields: "images,mask"}); !strings.Contains(got, `there is no "mask"`) {
		t.Error(got)
	}
	if got := openError(t, t.TempDir(), source.Options{Kind: "voc"}); !strings.Contains(got, "no XML files of annotations") {
		t.Error(got)
	}
}
