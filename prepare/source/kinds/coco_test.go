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

const cocoCategories = `"categories": [{"id": 44, "name": "bottle"}, {"id": 3, "name": "car"}, {"id": 90, "name": "car"}]`

// cocoSet makes the folder of a set with odd annotations.
func cocoSet(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	put(t, root, "annotations/instances_val2017.json", `{"info": {"year": 2017}, "licenses": [],
	"images": [{"id": 9, "file_name": "b.png", "width": 6, "height": 5}, {"id": 4, "file_name": "a.png", "width": 6.0, "height": 5},
		{"id": 10, "file_name": "gone.png", "width": 6, "height": 5}, {"id": 11, "file_name": "other.png", "width": 7, "height": 5},
		{"id": 12, "file_name": "bare.png", "width": 6, "height": 5}],
	"annotations": [
		{"id": 1, "image_id": 4, "category_id": 3, "bbox": [1, 1, 3, 2], "area": 6, "iscrowd": 0, "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]]},
		{"id": 2, "image_id": 9, "category_id": 90, "bbox": [0.5, 0, 2.25, 1.5], "area": 3.375, "iscrowd": 0, "segmentation": []},
		{"id": 3, "image_id": 4, "category_id": 44, "bbox": [0, 0, 6, 5], "area": 2, "iscrowd": 1, "segmentation": {"size": [5, 6], "counts": [6, 2, 22]}},
		{"id": 4, "image_id": 4, "category_id": 44, "bbox": [0, 0, 0, 0], "area": 6, "segmentation": {"size": [5, 6], "counts": "6230009"}},
		{"id": 5, "image_id": 77, "category_id": 3, "bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0}], `+cocoCategories+`}`)
	for _, name := range []string{"a", "b", "bare", "other"} {
		put(t, root, "val2017/"+name+".png", picture(t, 6, 5))
	}
	return root
}

func TestCOCO(t *testing.T) {
	root := cocoSet(t)
	gone := filepath.ToSlash(filepath.Join(root, "val2017", "gone.png"))
	want := []string{
		"val2017/a.png 6x5 boxes=[1 1 4 3 0 0 6 5 0 0 0 0] labels=[0 1 1] area=[6 2 6] iscrowd=[0 1 0] image_id=[4]",
		"val2017/b.png 6x5 boxes=[0.5 0 2.75 1.5] labels=[2] area=[3.375] iscrowd=[0] image_id=[9]",
		"val2017/gone.png: file " + gone + ": no such file or directory",
		"val2017/other.png: the image is 6x5 pixels, and 7x5 by its annotations",
		"val2017/bare.png 6x5 boxes=[] labels=[] area=[] iscrowd=[] image_id=[12]",
	}
	info := checkSamples(t, root, "coco", "", want...)
	checkSamples(t, filepath.Join(root, "annotations", "instances_val2017.json"), "coco", "", want...)
	if got := classesOf(info); !slices.Equal(got, []string{"car 3", "bottle", "car 90"}) {
		t.Errorf("classes %q", got)
	}
	if len(info.Hints) != 1 || !strings.Contains(info.Hints[0], "1 annotations are of images that the file does not list, such as image 77") {
		t.Errorf("hints %q", info.Hints)
	}
	for _, f := range info.Fields {
		if rows := f.Ragged && !f.Image(); rows != (f.Instances == "objects") {
			t.Errorf("%s is of the instances %q", f.Name, f.Instances)
		}
	}
}

// Masks are those of pycocotools, one below the other; the classes of pixels are those of torchvision's reference.
func TestCOCOMasks(t *testing.T) {
	root := cocoSet(t)
	polygon := "|000000|011100|011100|000000|000000"
	checkSamples(t, root, "coco", "masks,mask=classes",
		"val2017/a.png masks"+polygon+"|000000|010000|010000|000000|000000"+polygon+" classes|000000|025525525500|025525525500|000000|000000",
		"val2017/b.png: masks: object 0: it has no segmentation",
		"val2017/gone.png: file "+filepath.ToSlash(filepath.Join(root, "val2017", "gone.png"))+": no such file or directory",
		"val2017/other.png: the image is 6x5 pixels, and 7x5 by its annotations",
		"val2017/bare.png masks=[] classes|000000|000000|000000|000000|000000",
	)
}

// Points are centers of pixels, and rows that have none are not labeled.
func TestCOCOKeypoints(t *testing.T) {
	root := t.TempDir()
	put(t, root, "train/_annotations.coco.json", `{"categories": [{"id": 1, "name": "person", "keypoints": ["nose", "tail"]}, {"id": 2, "name": "tree"}],
	"annotations": [{"id": 1, "image_id": 0, "category_id": 1, "bbox": [0, 0, 2, 2], "keypoints": [3, 4, 2, 0, 0, 0], "num_keypoints": 1},
		{"id": 2, "image_id": 0, "category_id": 2, "bbox": [0, 0, 2, 2]}, {"id": 3, "image_id": 1, "category_id": 1, "bbox": [0, 0, 2, 2], "keypoints": [1, 2, 3]}],
	"images": [{"id": 1, "file_name": "bad.png"}, {"id": 0, "file_name": "x/good.png"}]}`)
	put(t, root, "valid/_annotations.coco.json", `{"images": [{"id": 0, "file_name": "x/good.png"}], "annotations": [], "categories": []}`)
	for _, name := range []string{"train/x/good.png", "train/bad.png", "valid/x/good.png"} {
		put(t, root, name, picture(t, 6, 5))
	}
	info := checkSamples(t, root, "coco", "images,keypoints",
		"train/x/good.png (train) 6x5 keypoints=[3.5 4.5 2 0 0 0 0 0 0 0 0 0]",
		"train/bad.png: annotation 0 of image 1 (id 3): keypoints have 3 numbers, and their category has 2 points of 3",
		"valid/x/good.png (valid) 6x5 keypoints=[]",
	)
	if !slices.Equal(info.Splits, []string{"train", "valid"}) {
		t.Errorf("splits %q", info.Splits)
	}
}

// Bad annotations make bad samples, and files that are none cannot be opened.
func TestBadCOCO(t *testing.T) {
	file := func(images, annotations string) string {
		root := t.TempDir()
		put(t, root, "instances.json", `{"images": `+images+`, "annotations": `+annotations+`, `+cocoCategories+`}`)
		put(t, root, "a.png", picture(t, 6, 5))
		return filepath.Join(root, "instances.json")
	}
	one := `[{"id": 1, "file_name": "a.png"}]`
	for annotation, want := range map[string]string{
		`{"category_id": 4, "bbox": [0, 0, 1, 1]}`:                                                   "category_id 4 is none of the categories",
		`{"category_id": 3, "bbox": [0, 0, 1]}`:                                                      "bbox has 3 numbers, not 4",
		`{"category_id": 3, "bbox": [3, 0, -1, 1]}`:                                                  "box 0 is [3 0 2 1]: right must not be less than left",
		`{"category_id": 3, "bbox": [8, 0, 1, 1]}`:                                                   "box 0 is [8 0 9 1]: it is outside of the image, which is 6x5 pixels",
		`{"category_id": 3, "bbox": [0, 0, 1, 1], "area": -1}`:                                       "object 0 has an area of -1",
		`{"category_id": 3, "bbox": [0, 0, 1, 1], "iscrowd": 2}`:                                     "iscrowd is 2, neither 0 nor 1",
		`{"category_id": 3, "bbox": [0, 0, 1, 1], "segmentation": [[0, 0, 1, 1]]}`:                   "masks: object 0: a polygon of 4 numbers",
		`{"category_id": 3, "bbox": [0, 0, 1, 1], "segmentation": {"size": [6, 5]}}`:                 "segmentation of size [6 5] on an image of height 5 and width 6",
		`{"category_id": 3, "bbox": [0, 0, 1, 1], "segmentation": {"size": [5, 6], "counts": [29]}}`: "run lengths of 29 pixels for a mask of 6x5",
	} {
		path := file(one, `[{"id": 5, "image_id": 1, `+annotation[1:]+`]`)
		s := mustOpen(t, path, source.Options{Fields: "images,boxes,area,masks"})
		for sample := range s.Samples() {
			if got := sampleText(t, s, sample); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", annotation, got, want)
			}
		}
		s.Close()
	}
	for path, want := range map[string]string{
		file(`[]`, `[]`): "lists no images",
		file(`[{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]`, `[]`):    "two images have the id 1",
		file(`[{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "a.png"}]`, `[]`):    `images 1 and 2 have the file_name "a.png"`,
		file(`[{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "../x.png"}]`, `[]`): `"../x.png" leads out of the folder`,
		file(`[{"id": 1, "file_name": "none.png"}]`, `[]`):                                  `its images, such as "none.png", are in none of`,
		file(one, `[{"id": 1, "image_id": "x"}]`):                                           "annotations: element 0: json: cannot unmarshal string",
		file(one, `[{"id": 1, "image_id": 1}`):                                              "annotations: element 1: json: cannot unmarshal string",
		file(one, `{}`):                                                                     "{ where [ is expected",
	} {
		if got := openError(t, path, source.Options{Kind: "coco"}); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for fields, want := range map[string]string{
		"images,box":       `there is no "box"; known are images, boxes`,
		"boxes:boxes":      "write boxes without one",
		"boxes,area=boxes": `are both the field "boxes"`,
	} {
		if got := openError(t, file(one, `[]`), source.Options{Fields: fields}); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Segments of panoptic annotations are objects, and their pixels those of the PNG that have their id.
func TestCOCOPanoptic(t *testing.T) {
	root := t.TempDir()
	put(t, root, "annotations/panoptic_val2017.json", `{"images": [{"id": 1, "file_name": "a.jpg", "width": 3, "height": 1}, {"id": 2, "file_name": "b.jpg", "width": 3, "height": 1}],
	"annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": [{"id": 197121, "category_id": 200, "area": 1, "bbox": [0, 0, 1, 1], "iscrowd": 0},
		{"id": 5, "category_id": 1, "area": 1, "bbox": [2, 0, 1, 1], "iscrowd": 1}]},
		{"image_id": 2, "file_name": "../b.png", "segments_info": []}],
	"categories": [{"id": 1, "name": "person", "isthing": 1}, {"id": 200, "name": "rug", "isthing": 0}]}`)
	for _, name := range []string{"a.jpg", "b.jpg"} {
		put(t, root, "val2017/"+name, picture(t, 3, 1))
	}
	segments := image.NewNRGBA(image.Rect(0, 0, 3, 1))
	segments.Set(0, 0, color.NRGBA{1, 2, 3, 255})
	segments.Set(1, 0, color.NRGBA{0, 0, 0, 255})
	segments.Set(2, 0, color.NRGBA{5, 0, 0, 255})
	put(t, root, "annotations/panoptic_val2017/a.png", pngOf(t, segments))
	checkSamples(t, root, "coco", "boxes,labels,area,iscrowd,masks,mask",
		"val2017/a.jpg boxes=[0 0 1 1 2 0 3 1] labels=[1 0] area=[1 1] iscrowd=[0 1] masks|100|001 mask|201",
		`val2017/b.jpg: annotation 0 of image 2: file_name "../b.png" leads out of the folder`,
	)
}
