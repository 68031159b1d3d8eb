package kinds

import (
	"encoding/base64"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

func TestLabelMe(t *testing.T) {
	root := t.TempDir()
	mask := base64.StdEncoding.EncodeToString([]byte(grayMask(t, 0, 1, 1)))
	for name, shapes := range map[string]string{
		"a": `{"label": "dog", "points": [[4, 3], [1, 1]], "shape_type": "rectangle"}, {"label": "cat", "points": [[0, 0], [2, 0], [2, 2], [0, 2]]},
			{"label": "cat", "group_id": 7, "points": [[0, 0], [1, 0], [1, 1], [0, 1]], "shape_type": "polygon"}, {"label": "cat", "group_id": 7, "points": [[5, 4], [6, 4], [6, 5], [5, 5]]}`,
		"b": `{"label": "dog", "points": [[3, 2], [3, 4]], "shape_type": "circle"}, {"label": "dog", "points": [[2, 1], [5, 2]], "shape_type": "mask", "mask": "` + mask + `"}`,
		"c": `{"label": "dog", "points": [[3, 2]], "shape_type": "point"}`, "d": `{"label": "dog", "points": [[3, 2]], "shape_type": "star"}`,
	} {
		put(t, root, "images/"+name+".png", picture(t, 6, 5))
		put(t, root, "labels/"+name+".json", `{"version": "5.4.1", "imagePath": "..\\images\\`+name+`.png", "imageData": null, "imageHeight": 5, "imageWidth": 6, "shapes": [`+shapes+`]}`)
	}
	put(t, root, "labels/e.json", `{"imagePath": "a.png"}`)
	put(t, root, "labels/f.json", `{"imagePath": "../../a.png", "shapes": []}`)
	info := checkSamples(t, root, "labelme", "labels,boxes,masks",
		"labels/a.json labels=[1 0 0] boxes=[1 1 4 3 0 0 2 2 0 0 6 5] masks|000000|011100|011100|000000|000000|110000|110000|000000|000000|000000|100000|000000|000000|000000|000001",
		"labels/b.json labels=[1 1] boxes=[1 0 5 4 2 1 5 2] masks|001100|011110|011110|001100|000000|000000|000110|000000|000000|000000",
		"labels/c.json: masks: object 0: a point has no area",
		`labels/d.json: shape "dog": is of the unknown type "star"`,
		"labels/e.json: is not a JSON file of LabelMe: it has no shapes and imagePath",
		"labels/f.json: file "+filepath.ToSlash(filepath.Join(root, "..", "a.png"))+": "+vfs.ErrOutside.Error(),
	)
	if got := classesOf(info); !slices.Equal(got, []string{"cat", "dog"}) {
		t.Errorf("classes %q", got)
	}
}

// A folder of LabelMe is one, too, if its first JSON file comes after many names.
func TestLabelMeWithFewFiles(t *testing.T) {
	root := t.TempDir()
	for i := range 400 {
		put(t, root, fmt.Sprintf("photos/%03d.png", i), "")
	}
	for i := range 3 {
		put(t, root, fmt.Sprintf("photos/%03d.json", 100*i), `{"imagePath": "a.png", "shapes": []}`)
	}
	for range 200 { // files that are found before others: most file systems list them by age or by digests of names
		if kind, err := source.Detect(root); err != nil {
			t.Fatal(err)
		} else if kind == "imagefolder" {
			break
		}
		put(t, root, fmt.Sprintf("photos/x%d.png", rand.Int()), "")
	}
	for _, fields := range []string{"", "labels,boxes"} {
		s, err := Open(t.Context(), root, source.Options{Fields: fields})
		require.NoError(t, err)
		if info := s.Info(); info.Kind != "labelme" || info.Count != 3 {
			t.Errorf("%+v", info)
		}
		s.Close()
	}
}
