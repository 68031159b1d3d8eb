package docs

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// annotated makes the datasets that the command lines of labels.md name, of two images each.
type annotated struct {
	t   *testing.T
	dir string
}

func (a annotated) file(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	require.NoError(a.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(a.t, os.WriteFile(path, []byte(text), 0o644))
}

// image writes an image of 60 x 40 pixels: a JPEG, a PNG of colors, or one of the numbers of a mask.
func (a annotated) image(name string, numbers ...uint8) {
	a.t.Helper()
	var b strings.Builder
	rect, err := image.Rect(0, 0, 60, 40), error(nil)
	switch {
	case len(numbers) > 0:
		m := image.NewGray(rect)
		for i := range m.Pix {
			m.Pix[i] = numbers[i/60/20%len(numbers)]
		}
		err = png.Encode(&b, m)
	case strings.HasSuffix(name, ".png"):
		m := image.NewNRGBA(rect)
		for i := range 60 * 40 {
			m.SetNRGBA(i%60, i/60, color.NRGBA{7, 0, 0, 255}) // of panoptic masks, segment 7
		}
		err = png.Encode(&b, m)
	default:
		err = jpeg.Encode(&b, image.NewRGBA(rect), nil)
	}
	require.NoError(a.t, err)
	a.file(name, b.String())
}

func (a annotated) json(name string, v any) {
	a.t.Helper()
	text, err := json.Marshal(v)
	require.NoError(a.t, err)
	a.file(name, string(text))
}

type object = map[string]any

// coco writes a split of COCO: its objects, and its segments.
func (a annotated) coco(split string, first int) {
	var images, objects, segments []object
	for i := first; i < first+2; i++ {
		name := fmt.Sprintf("%d.jpg", i)
		a.image("coco/" + split + "/" + name)
		a.image(fmt.Sprintf("coco/annotations/panoptic_%s/%d.png", split, i))
		images = append(images, object{"id": i, "file_name": name, "width": 60, "height": 40})
		objects = append(objects, object{"id": i, "image_id": i, "category_id": 3, "iscrowd": 0, "area": 100, "bbox": []int{5, 5, 10, 10},
			"segmentation": [][]int{{5, 5, 15, 5, 15, 15, 5, 15}}})
		segments = append(segments, object{"image_id": i, "file_name": fmt.Sprintf("%d.png", i), "segments_info": []object{
			{"id": 7, "category_id": 3, "area": 2400, "bbox": []int{0, 0, 60, 40}, "iscrowd": 0}}})
	}
	categories := []object{{"id": 3, "name": "cat", "isthing": 1}}
	a.json("coco/annotations/instances_"+split+".json", object{"images": images, "annotations": objects, "categories": categories})
	a.json("coco/annotations/panoptic_"+split+".json", object{"images": images, "annotations": segments, "categories": categories})
}

func (a annotated) all() {
	a.coco("train2017", 1)
	a.coco("val2017", 3)
	for _, kind := range []string{"Main", "Segmentation"} {
		a.file("VOCdevkit/VOC2012/ImageSets/"+kind+"/train.txt", "a\nb\n")
	}
	a.file("coco8/data.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n")
	for i, name := range []string{"a", "b"} {
		a.image("VOCdevkit/VOC2012/JPEGImages/" + name + ".jpg")
		a.image("VOCdevkit/VOC2012/SegmentationClass/"+name+".png", 0, 15)
		a.file("VOCdevkit/VOC2012/Annotations/"+name+".xml", "<annotation><size><width>60</width><height>40</height></size><object><name>cat</name>"+
			"<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>20</xmax><ymax>30</ymax></bndbox></object></annotation>")
		split := []string{"train", "val"}[i]
		a.image("coco8/images/" + split + "/" + name + ".jpg")
		a.file("coco8/labels/"+split+"/"+name+".txt", "1 0.5 0.5 0.2 0.2\n")
		a.image("cityscapes/leftImg8bit/" + split + "/x/" + name + "_leftImg8bit.png")
		a.image("cityscapes/gtFine/"+split+"/x/"+name+"_gtFine_labelIds.png", 7, 26)
		a.image(name + ".jpg")
		a.image(name+".png", 0, 1)
	}
	a.file("photos.tsv", "file\tboxes\tcategory\tseg\na.jpg\t[[1, 2, 10, 12]]\t[0]\ta.png\nb.jpg\t[]\t[]\tb.png\n")
	a.file("train.json", `[{"op": "RandomResizedCrop", "size": [32, 32]}, {"op": "SanitizeBoundingBoxes"}]`)
}

// Every command line of the page about labels runs, in order, but for those that need a network.
func TestCommandsOfLabels(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the page's commands are for a shell of Unix")
	}
	page, err := os.ReadFile("labels.md")
	require.NoError(t, err)
	path, dir, cache := tools(t), t.TempDir(), t.TempDir()
	annotated{t, dir}.all()
	ran := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(string(page), "\\\n", " "), "\n") {
		if !strings.HasPrefix(line, "    penstock ") {
			continue
		}
		if strings.Contains(line, "hf://") {
			t.Logf("not run, as it needs a network: %s", line)
			continue
		}
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+path, "XDG_CACHE_HOME="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		ran++
	}
	if ran < 14 {
		t.Errorf("only %d command lines were found", ran)
	}
}
