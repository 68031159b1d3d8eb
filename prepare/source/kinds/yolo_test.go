package kinds

import (
	"bytes"
	"image"
	"image/jpeg"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

func TestYOLO(t *testing.T) {
	root := t.TempDir()
	put(t, root, "data.yaml", "path: ../datasets/none\ntrain: ../train/images # as Roboflow\nval: [valid/images]\ntest:\nnc: 2\nnames:\n  0: cat\n  1: dog\n")
	for name, text := range map[string]string{
		"a": "1 0.5 0.5 0.5 0.4\n\n0 0.5 0.5 1 1\n1 0.5 0.5 0.5 0.4\n", "empty": "", "bad": "1 0.5 x 0.5 0.4", "class": "0.5 0.5 0.5 0.5 0.4", "far": "0 0.5 1.2 0.5 0.4",
		"few": "0 0.5 0.5", "unknown": "7 0.5 0.5 0.5 0.4", "polygons": "1 0.1 0.1 0.9 0.1 0.9 0.7\n0 0 0 0.5 0.5\n",
	} {
		put(t, root, "train/images/"+name+".png", picture(t, 10, 10))
		put(t, root, "train/labels/"+name+".txt", text)
	}
	put(t, root, "valid/images/sub/background.png", picture(t, 10, 10))
	file := func(name string) string {
		return "train/images/" + name + ".png: file " + filepath.ToSlash(filepath.Join(root, "train/labels", name)) + ".txt: row 0: "
	}
	want := []string{
		"train/images/a.png (train) 10x10 boxes=[2.5 3 7.5 7 0 0 10 10] labels=[1 0]",
		file("bad") + `"x" is not a number`,
		file("class") + "class 0.5 is not a whole number from 0 on",
		"train/images/empty.png (train) 10x10 boxes=[] labels=[]",
		file("far") + "1.2 is not from 0 to 1: places are parts of the width and the height",
		file("few") + "2 numbers; a box has 4, and kpt_shape [0, 0]",
		"train/images/polygons.png (train) 10x10 boxes=[1 1 9 7 0 0 5 5] labels=[1 0]",
		"train/images/unknown.png: object 0 is of class 7, and there are 2",
		"valid/images/sub/background.png (val) 10x10 boxes=[] labels=[]",
	}
	info := checkSamples(t, root, "yolo", "", want...)
	checkSamples(t, filepath.Join(root, "data.yaml"), "yolo", "", want...)
	if got := classesOf(info); !slices.Equal(got, []string{"cat", "dog"}) || !slices.Equal(info.Splits, []string{"train", "val"}) {
		t.Errorf("classes %q, splits %q", got, info.Splits)
	}
}

func TestYOLOPoses(t *testing.T) {
	root := t.TempDir()
	put(t, root, "pose.yml", "train: list.txt\nnames: [person]\nkpt_shape: [2, 3]\n")
	put(t, root, "list.txt", "./images/a.png\nimages/b.png\n")
	put(t, root, "images/a.png", picture(t, 10, 20))
	put(t, root, "images/b.png", picture(t, 10, 20))
	put(t, root, "labels/a.txt", "0 .5 .5 .5 .5 .1 .2 2 .3 .4 0")
	put(t, root, "labels/b.txt", "0 .5 .5 .5 .5 .1 .2 2 .3")
	checkSamples(t, root, "yolo", "",
		"images/a.png 10x20 boxes=[2.5 5 7.5 15] labels=[0] keypoints=[1 4 2 0 0 0]",
		"images/b.png: file "+filepath.ToSlash(filepath.Join(root, "labels/b.txt"))+": row 0: 8 numbers; a box has 4, and kpt_shape [2, 3]",
	)
	put(t, root, "pose.yml", "train: list.txt\nnames: [person]\nkpt_shape: [3, 2]\n")
	put(t, root, "labels/a.txt", "0 .5 .5 .5 .5 .1 .2 -1 0 .3 .4")
	put(t, root, "labels/b.txt", "")
	checkSamples(t, root, "yolo", "keypoints", "images/a.png keypoints=[1 4 2 0 0 0 3 8 2]", "images/b.png keypoints=[]")
}

// Folders that no YAML file describes, and polygons as masks.
func TestYOLOFolders(t *testing.T) {
	root := t.TempDir()
	put(t, root, "classes.txt", "cat\nbig dog\r\n")
	put(t, root, "images/train/a.png", picture(t, 5, 5))
	put(t, root, "images/val/a.png", picture(t, 5, 5))
	put(t, root, "labels/train/a.txt", "1 .2 .2 .8 .2 .8 .6 .2 .6\n")
	put(t, root, "labels/val/a.txt", "0 .5 .5 1 1\n")
	checkSamples(t, root, "yolo", "labels,masks",
		"images/train/a.png (train) labels=[1] masks|00000|01110|01110|00000|00000",
		"images/val/a.png: masks: object 0 has a box and no outline",
	)
	for text, want := range map[string]string{
		"train: images\nnames: {1: cat}": "class 1 of 1; numbers begin with 0 and have no gaps", "val: nowhere\nnc: 1": "there is no " + filepath.Join(root, "nowhere"),
		"names: [a]\ntrain:": "it has none of train, val and test", "train: {a: b}\nnames: []": "is neither a path nor a list of paths",
		"train: images/train\nval: images/train\nnames: [a, b]": "is listed twice", "train: labels\nnames: [a]": "holds no images",
		"train: images\nnames: [a]\nkpt_shape: [17, 4]": "kpt_shape is [17 4]", "train: /\nnames: [a]": "it is outside of the source's folder",
	} {
		put(t, root, "x.yaml", text+"\n")
		if got := openError(t, filepath.Join(root, "x.yaml"), source.Options{Kind: "yolo"}); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Places of YOLO and LabelMe are on the picture as its EXIF orientation turns it: one that is not turned is a bad sample.
func TestTurnedImages(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 10, 20)), nil))
	exif := "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	photo := b.String()[:2] + "\xff\xe1\x00" + string(rune(len(exif)+2)) + exif + b.String()[2:]
	root := t.TempDir()
	put(t, root, "images/a.jpg", photo)
	put(t, root, "labels/a.txt", "0 .5 .5 .5 .5\n")
	sized := t.TempDir()
	put(t, sized, "a.jpg", photo)
	put(t, sized, "a.json", `{"imagePath": "a.jpg", "imageWidth": 20, "imageHeight": 10, "shapes": [{"label": "x", "points": [[1, 2], [15, 8]], "shape_type": "rectangle"}]}`)
	for _, c := range []struct {
		path   string
		orient bool
		want   string
	}{
		{root, true, "images/a.jpg boxes=[5 2.5 15 7.5]"},
		{root, false, "images/a.jpg: its EXIF orientation (6) turns the image, and annotations are on the image that is turned; --exif-orientation applied turns it"},
		{sized, true, "a.json boxes=[1 2 15 8]"},
		{sized, false, "a.json: the image is 10x20 pixels, and 20x10 by its annotations; its EXIF orientation turns it: --exif-orientation applied or ignored takes it the other way"},
	} {
		s := mustOpen(t, c.path, source.Options{Fields: "boxes", Orient: c.orient})
		for sample := range s.Samples() {
			if got := sampleText(t, s, sample); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		}
		s.Close()
	}
}
