package kinds

import (
	"image"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/prepare/source"
)

// grayMask returns the file of a mask of 3 by 1 pixels.
func grayMask(t *testing.T, numbers ...byte) string {
	t.Helper()
	return pngOf(t, &image.Gray{Pix: numbers, Stride: len(numbers), Rect: image.Rect(0, 0, len(numbers), 1)})
}

func TestCityscapes(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"train/bonn/bonn_1_2", "train/bonn/bonn_1_3", "val/ulm/ulm_0_0", "val/ulm/ulm_0_1"} {
		put(t, root, "leftImg8bit/"+name+"_leftImg8bit.png", picture(t, 3, 1))
	}
	put(t, root, "gtFine/train/bonn/bonn_1_2_gtFine_labelIds.png", grayMask(t, 7, 33, 1))
	put(t, root, "gtFine/train/bonn/bonn_1_2_gtFine_color.png", picture(t, 3, 1))
	put(t, root, "gtFine/train/bonn/bonn_1_2_gtFine_instanceIds.png", picture(t, 3, 1))
	put(t, root, "gtFine/train/bonn/bonn_1_2_gtFine_polygons.json", "{}")
	put(t, root, "gtFine/train/bonn/bonn_1_3_gtFine_labelTrainIds.png", grayMask(t, 1, 2, 255))
	put(t, root, "gtFine/train/bonn/bonn_1_3_gtFine_labelIds.png", grayMask(t, 7, 7, 7))
	put(t, root, "gtFine/val/ulm/ulm_0_0_gtFine_labelIds.png", grayMask(t, 7, 7))
	info := checkSamples(t, root, "maskfolder", "",
		"leftImg8bit/train/bonn/bonn_1_2_leftImg8bit.png (train) 3x1 mask|018255",
		"leftImg8bit/train/bonn/bonn_1_3_leftImg8bit.png (train) 3x1 mask|12255",
		"leftImg8bit/val/ulm/ulm_0_0_leftImg8bit.png: mask: the mask is 2x1 pixels, and its image 3x1",
		"leftImg8bit/val/ulm/ulm_0_1_leftImg8bit.png: mask: the image has no mask: "+filepath.ToSlash(filepath.Join(root, "gtFine/val/ulm/ulm_0_1.png"))+" is not there, also with a suffix such as _mask",
	)
	if got := classesOf(info); len(got) != 19 || got[0] != "road" || got[18] != "bicycle" {
		t.Errorf("classes %q", got)
	}
}

func TestMaskFolders(t *testing.T) {
	for name, c := range map[string]struct {
		images, masks []string
		want          []string
	}{
		"ADE20K":    {[]string{"images/training/a.jpg", "images/validation/b.jpg"}, []string{"annotations/training/a.png", "annotations/validation/b.png"}, []string{"images/training/a.jpg (training)", "images/validation/b.jpg (validation)"}},
		"splits":    {[]string{"val/images/a.png", "train/images/a.png"}, []string{"val/masks/a_mask.png", "train/masks/a.png"}, []string{"train/images/a.png (train)", "val/images/a.png (val)"}},
		"beside":    {[]string{"a.jpg", "b.png"}, []string{"a_mask.png", "b_mask.tif.png"}[:1], []string{"a.jpg", "b.png: mask: the image has no mask"}},
		"suffixes":  {[]string{"images/x/a.jpg", "images/b.jpg"}, []string{"masks/x/a-seg.png", "masks/b_labelIds.png", "masks/left.png"}, []string{"images/b.jpg", "images/x/a.jpg"}},
		"one split": {[]string{"images/train/a.jpg"}, []string{"masks/train/a.png"}, []string{"images/train/a.jpg"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, f := range c.images {
				put(t, root, f, picture(t, 3, 1))
			}
			for _, f := range c.masks {
				put(t, root, f, grayMask(t, 0, 1, 2))
			}
			s := mustOpen(t, root, source.Options{})
			defer s.Close()
			if s.Info().Kind != "maskfolder" {
				t.Fatalf("a source of kind %s", s.Info().Kind)
			}
			var got []string
			for sample := range s.Samples() {
				got = append(got, strings.TrimSuffix(sampleText(t, s, sample), " 3x1 mask|012"))
			}
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if hints := s.Info().Hints; (len(hints) > 0) != (name == "suffixes") {
				t.Errorf("hints %q", hints)
			}
		})
	}
	root := t.TempDir()
	put(t, root, "images/a.jpg", picture(t, 3, 1))
	put(t, root, "masks/a.png", grayMask(t, 1))
	put(t, root, "masks/a_mask.png", grayMask(t, 1))
	if got := openError(t, root, source.Options{}); !strings.Contains(got, "are both masks of a") {
		t.Error(got)
	}
}
