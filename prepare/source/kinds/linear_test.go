package kinds

import (
	"archive/tar"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// joinedBy returns n texts, one after the other.
func joinedBy(n int, separator string, text func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = text(i)
	}
	return strings.Join(list, separator)
}

// grown are sources that have n of something.
var grown = map[string]func(t *testing.T, root string, n int){
	"yolo boxes": func(t *testing.T, root string, n int) {
		put(t, root, "data.yaml", "train: images\nnames: [cat]\n")
		put(t, root, "images/a.png", picture(t, 10, 10))
		put(t, root, "labels/a.txt", joinedBy(n, "\n", func(i int) string { return fmt.Sprintf("0 0.5 0.5 0.5 %f", .5/float64(i+1)) }))
	},
	"yolo names by number": func(t *testing.T, root string, n int) {
		put(t, root, "data.yaml", "train: images\nnames:\n"+joinedBy(n, "\n", func(i int) string { return fmt.Sprintf("  %d: name %d", i, i) }))
		put(t, root, "images/a.png", picture(t, 10, 10))
	},
	"yolo names": func(t *testing.T, root string, n int) {
		put(t, root, "data.yaml", "train: images\nnames:\n"+joinedBy(n, "\n", func(i int) string { return fmt.Sprintf("- name %d", i) }))
		put(t, root, "images/a.png", picture(t, 10, 10))
	},
	"yolo other keys": func(t *testing.T, root string, n int) {
		put(t, root, "data.yaml", "train: images\nnames: [cat]\n"+joinedBy(n, "\n", func(i int) string { return fmt.Sprintf("key%d: 1", i) }))
		put(t, root, "images/a.png", picture(t, 10, 10))
	},
	"yolo classes.txt": func(t *testing.T, root string, n int) {
		put(t, root, "classes.txt", joinedBy(n, "\n", func(i int) string { return fmt.Sprint("name ", i) }))
		put(t, root, "images/a.png", picture(t, 10, 10))
		put(t, root, "labels/a.txt", "0 .5 .5 .5 .5")
	},
	"coco annotations": func(t *testing.T, root string, n int) {
		put(t, root, "images/a.png", picture(t, 6, 5))
		put(t, root, "instances.json", `{"images": [{"id": 1, "file_name": "a.png", "width": 6, "height": 5}], "categories": [{"id": 1, "name": "cat"}], "annotations": [`+
			joinedBy(n, ",", func(i int) string {
				return fmt.Sprintf(`{"id": %d, "image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 2], "area": 6, "iscrowd": 0}`, i)
			})+"]}")
	},
	"coco categories": func(t *testing.T, root string, n int) {
		put(t, root, "images/a.png", picture(t, 6, 5))
		put(t, root, "instances.json", `{"images": [{"id": 1, "file_name": "a.png", "width": 6, "height": 5}], "annotations": [], "categories": [`+
			joinedBy(n, ",", func(i int) string { return fmt.Sprintf(`{"id": %d, "name": "name %d"}`, i, i/2) })+"]}")
	},
	"coco images": func(t *testing.T, root string, n int) {
		put(t, root, "images/a0.png", picture(t, 6, 5))
		put(t, root, "instances.json", `{"annotations": [], "categories": [{"id": 1, "name": "cat"}], "images": [`+
			joinedBy(n, ",", func(i int) string {
				return fmt.Sprintf(`{"id": %d, "file_name": "a%d.png", "width": 6, "height": 5}`, i, i)
			})+"]}")
	},
	"voc objects": func(t *testing.T, root string, n int) {
		put(t, root, "JPEGImages/a.png", picture(t, 6, 5))
		put(t, root, "Annotations/a.xml", vocXML(joinedBy(n, "", func(i int) string { return vocObject(fmt.Sprint("name ", i), "1 1 4 3", "") })))
	},
	"voc list": func(t *testing.T, root string, n int) {
		put(t, root, "JPEGImages/a0.png", picture(t, 6, 5))
		put(t, root, "Annotations/a0.xml", vocXML(vocObject("cat", "1 1 4 3", "")))
		put(t, root, "ImageSets/Main/train.txt", joinedBy(n, "\n", func(i int) string { return fmt.Sprint("a", i) }))
	},
	"labelme shapes": func(t *testing.T, root string, n int) {
		put(t, root, "a.png", picture(t, 6, 5))
		put(t, root, "a.json", `{"imagePath": "a.png", "imageHeight": 5, "imageWidth": 6, "shapes": [`+joinedBy(n, ",", func(i int) string {
			return fmt.Sprintf(`{"label": "name %d", "group_id": %d, "points": [[4, 3], [1, 1]], "shape_type": "rectangle"}`, i, i/2)
		})+"]}")
	},
	"classes of a table": func(t *testing.T, root string, n int) {
		put(t, root, "a.csv", "label,x\n"+joinedBy(n, "\n", func(i int) string { return fmt.Sprintf("name %d,%d", i, i) }))
	},
	"columns of a table": func(t *testing.T, root string, n int) {
		n = min(n/10, 900)
		row := joinedBy(n, ",", func(i int) string { return fmt.Sprint("c", i) }) + "\n"
		put(t, root, "a.csv", row+joinedBy(n, ",", func(i int) string { return fmt.Sprint(i) })+"\n")
	},
	"keys of JSON lines": func(t *testing.T, root string, n int) {
		n = min(n/10, 900)
		put(t, root, "a.jsonl", "{"+joinedBy(n, ",", func(i int) string { return fmt.Sprintf(`"c%d": %d`, i, i) })+"}\n")
	},
	"members of a sample": func(t *testing.T, root string, n int) {
		n = min(n/10, 900)
		f, err := os.Create(filepath.Join(root, "a.tar"))
		require.NoError(t, err)
		defer f.Close()
		w := tar.NewWriter(f)
		for i := range n {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("a.x%d", i), Mode: 0o644}))
		}
		require.NoError(t, w.Close())
	},
	"masks": func(t *testing.T, root string, n int) {
		n /= 50
		for i := range n {
			put(t, root, fmt.Sprintf("images/a%d.png", i), picture(t, 2, 1))
			put(t, root, fmt.Sprintf("masks/a%d.png", i), grayMask(t, 0, 1))
		}
	},
	"classes in folders": func(t *testing.T, root string, n int) {
		n /= 50
		for i := range n {
			put(t, root, fmt.Sprintf("class %d/a.png", i), picture(t, 2, 1))
		}
	},
}

var parts = flag.Int("parts", 1000, "parts of the smaller source of TestLinearWork; a few formats have fewer")

// TestLinearWork compares the CPU time of a source with that of one 8 times as large: square work takes 64 times as long.
func TestLinearWork(t *testing.T) {
	for name, grow := range grown {
		t.Run(name, func(t *testing.T) {
			const times, most = 8, 24
			n := *parts
			cost := func(n int) time.Duration {
				root := t.TempDir()
				grow(t, root, n)
				for _, file := range []string{"a.csv", "a.jsonl", "a.tar", "instances.json"} {
					if _, err := os.Stat(filepath.Join(root, file)); err == nil {
						root = filepath.Join(root, file)
					}
				}
				least := time.Hour
				for range 2 {
					began := usage.Process()
					_, samples, err := describe(t, root, source.Options{})
					if least = min(least, usage.Process()-began); err != nil || len(samples) == 0 {
						t.Fatal(err)
					}
				}
				return least
			}
			small, large := cost(n), cost(times*n)
			t.Logf("%d: %v, %d: %v, ratio %.1f", n, small, times*n, large, float64(large)/float64(small))
			if small = max(small, 3*time.Millisecond); large > most*small {
				t.Errorf("%d times as much takes %v instead of %v", times, large, small)
			}
		})
	}
}
