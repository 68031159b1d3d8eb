package prepare

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// cocoSet makes a set of COCO of n photographs of two sizes: photograph i has i%3 rectangles.
func cocoSet(t *testing.T, n int) string {
	t.Helper()
	root := t.TempDir()
	var images, annotations []string
	for i := range n {
		w, h := 40+4*(i%2), 30
		name := fmt.Sprintf("%d.png", i)
		rawtest.Put(t, root, "val2017/"+name, rawtest.Picture(t, name, w, h, i))
		images = append(images, fmt.Sprintf(`{"id": %d, "file_name": "%s", "width": %d, "height": %d}`, i, name, w, h))
		for k := range i % 3 {
			x, y, bw, bh := 3+15*k, 4+k, 8+2*k, 10
			annotations = append(annotations, fmt.Sprintf(`{"id": %d, "image_id": %d, "category_id": %d, "bbox": [%d, %d, %d, %d], "area": %d, "iscrowd": 0, "segmentation": [[%d, %d, %d, %d, %d, %d, %d, %d]]}`,
				len(annotations), i, 3+k, x, y, bw, bh, bw*bh, x, y, x+bw, y, x+bw, y+bh, x, y+bh))
		}
	}
	rawtest.Put(t, root, "annotations/instances_val2017.json", []byte(fmt.Sprintf(`{"images": [%s], "annotations": [%s], "categories": [{"id": 3, "name": "cat"}, {"id": 4, "name": "dog"}]}`,
		strings.Join(images, ","), strings.Join(annotations, ","))))
	return root
}

// The masks of instances go where the pixels go, and with the boxes that SanitizeBoundingBoxes removes; as arrays and as files.
func TestMasksOfInstances(t *testing.T) {
	root := cocoSet(t, 9)
	for name, change := range map[string]func(*Config){
		"resize":  func(c *Config) { c.Images.Resize = []int{24, 32} },
		"files":   func(c *Config) { c.Images.KeepEncoded = true },
		"smaller": func(c *Config) { c.Images.KeepEncoded, c.Images.Resize = true, []int{20} },
		"sanitize": func(c *Config) {
			c.Images.Transforms = []byte(`[{"op":"CornerCrop","size":[28,20],"corner":"top-right"},{"op":"SanitizeBoundingBoxes"}]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := plain(t, root)
			c.Fields = "images,boxes,labels,masks"
			change(&c)
			mustRun(t, c)
			m := rawtest.Manifest(t, c.Dest)
			f := m.Fields[m.Schema().Index("masks")]
			if f.Content != tensor.Mask || f.Instances != "objects" || !f.Ragged || f.IsBytes() != c.Images.KeepEncoded {
				t.Fatalf("%+v", f)
			}
			boxes, ends := floats(rawtest.Payload(t, c.Dest, "boxes.values")), ints(rawtest.Payload(t, c.Dest, "boxes.offsets"))
			masks, at := rawtest.Payload(t, c.Dest, "masks.values"), ints(rawtest.Payload(t, c.Dest, "masks.offsets"))
			seen := 0
			for i := range int(m.Records) {
				n, w, h, pixels := int(ends[i+1]-ends[i]), 0, 0, []byte(nil)
				if f.IsBytes() {
					file := masks[at[i]:at[i+1]]
					if n == 0 && len(file) == 0 {
						continue
					}
					mask, err := new(imagefile.Decoder).Numbers(file)
					require.NoError(t, err)
					w, h, pixels = mask.W, mask.H/n, mask.Pix
				} else {
					h, w = f.Shape[0], f.Shape[1]
					pixels = masks[int(at[i])*w*h : int(at[i+1])*w*h]
				}
				if len(pixels) != n*w*h {
					t.Fatalf("record %d: %d masks of %dx%d, and %d boxes", i, len(pixels)/(w*h), w, h, n)
				}
				for k := range n {
					seen++
					checkMask(t, fmt.Sprintf("record %d, object %d", i, k), pixels[k*w*h:(k+1)*w*h], w, boxes[4*(int(ends[i])+k):])
				}
			}
			if name == "sanitize" && seen >= 9 || name != "sanitize" && seen != 9 {
				t.Errorf("%d masks", seen)
			}
		})
	}
}

// checkMask compares the extent of a mask with a box.
func checkMask(t *testing.T, what string, mask []byte, w int, box []float32) {
	t.Helper()
	left, top, right, bottom := w, len(mask)/w, 0, 0
	for p, v := range mask {
		if v != 0 {
			left, right, top, bottom = min(left, p%w), max(right, p%w+1), min(top, p/w), max(bottom, p/w+1)
		}
	}
	for i, v := range []int{left, top, right, bottom} {
		if d := float32(v) - box[i]; d > 1 || d < -1 {
			t.Errorf("%s: the mask is from %d, %d to %d, %d, and its box %v", what, left, top, right, bottom, box[:4])
			return
		}
	}
}

// objectSets makes a source of each kind with objects on images.
var objectSets = map[string]func(t *testing.T) (path, fields string){
	"coco": func(t *testing.T) (path, fields string) { return cocoSet(t, 7), "" },
	"voc": func(t *testing.T) (path, fields string) {
		root := t.TempDir()
		for i := range 5 {
			name := fmt.Sprint(i)
			rawtest.Put(t, root, "JPEGImages/"+name+".png", rawtest.Picture(t, name+".png", 40, 30, i))
			box := strings.Repeat("<object><name>cat</name><bndbox><xmin>2</xmin><ymin>3</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object>", i)
			rawtest.Put(t, root, "Annotations/"+name+".xml", []byte("<annotation>"+box+"</annotation>"))
		}
		return root, ""
	},
	"labelme": func(t *testing.T) (path, fields string) {
		root := t.TempDir()
		for i := range 5 {
			name := fmt.Sprint(i)
			rawtest.Put(t, root, name+".png", rawtest.Picture(t, name+".png", 40, 30, i))
			shapes := strings.Repeat(`, {"label": "cat", "points": [[1, 2], [9, 2], [9, 8]]}`, i)
			rawtest.Put(t, root, name+".json", []byte(`{"imagePath": "`+name+`.png", "shapes": [`+strings.TrimPrefix(shapes, ",")+`]}`))
		}
		return root, "images,boxes,labels,masks"
	},
	"maskfolder": func(t *testing.T) (path, fields string) {
		root := t.TempDir()
		for i := range 5 {
			name := fmt.Sprintf("%d.png", i)
			rawtest.Put(t, root, "images/"+name, rawtest.Picture(t, name, 40, 30, i))
			var b bytes.Buffer
			require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))))
			rawtest.Put(t, root, "masks/"+name, b.Bytes())
		}
		return root, ""
	},
	"yolo": func(t *testing.T) (path, fields string) {
		root := t.TempDir()
		for i := range 5 {
			name := fmt.Sprintf("images/%d.png", i)
			rawtest.Put(t, root, name, rawtest.Picture(t, name, 40, 30, i))
			rawtest.Put(t, root, fmt.Sprintf("labels/%d.txt", i), []byte(strings.Repeat("0 .2 .2 .8 .2 .8 .6\n", i)))
		}
		return root, "images,boxes,labels,masks"
	},
}

// TestObjectSources builds datasets from the sources with objects, as a folder and as HDF5: they are the same.
func TestObjectSources(t *testing.T) {
	for kind, set := range objectSets {
		t.Run(kind, func(t *testing.T) {
			path, fields := set(t)
			var ids []string
			var schemas [][]store.Field
			for _, dest := range []string{"ds", "ds.h5"} {
				c := plain(t, path)
				c.Images.KeepEncoded, c.Fields = true, fields
				if c.Dest = filepath.Join(t.TempDir(), dest); dest != "ds" {
					c.Format = "hdf5"
				}
				s := mustRun(t, c)
				if s.Source.Kind != kind {
					t.Fatalf("a source of kind %s", s.Source.Kind)
				}
				ds, err := mmapds.Open(c.Dest)
				require.NoError(t, err)
				ids, schemas = append(ids, s.ID), append(schemas, ds.Schema().Fields)
				require.NoError(t, ds.Close())
			}
			if ids[0] != ids[1] || fmt.Sprint(schemas[0]) != fmt.Sprint(schemas[1]) {
				t.Errorf("ids %s, fields %v", ids, schemas)
			}
			if !slices.ContainsFunc(schemas[0], func(f store.Field) bool { return f.OnImage() }) {
				t.Errorf("nothing lies on the images: %v", schemas[0])
			}
		})
	}
}
