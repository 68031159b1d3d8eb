package kinds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// put makes a file and its folders.
func put(t testing.TB, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
}

// pngOf returns the file of an image.
func pngOf(t testing.TB, img image.Image) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return b.String()
}

// picture returns the file of an image of that size.
func picture(t testing.TB, w, h int) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	img.Set(1, 1, color.White)
	return pngOf(t, img)
}

// sampleText writes the values of a sample: numbers by the type of their field, masks as rows of digits, of image files their size.
func sampleText(t testing.TB, s source.Source, sample source.Sample) string {
	t.Helper()
	v := source.NewValues(len(s.Info().Fields))
	if err := sample.Data.Read(v); err != nil {
		return sample.Name + ": " + err.Error()
	}
	text := sample.Name
	if sample.Split != "" {
		text += " (" + sample.Split + ")"
	}
	for i, f := range s.Info().Fields {
		b := v.Get(i)
		switch {
		case f.Content == tensor.Mask && len(b) > 0:
			m, err := imagefile.New(imagefile.Options{}).Numbers(b)
			require.NoError(t, err)
			text += " " + f.Name
			for y := range m.H {
				text += "|"
				for x := range m.W {
					text += fmt.Sprint(m.Pix[(y*m.W+x)*m.DType.Size()])
				}
			}
		case f.Content == tensor.Image:
			c, err := imagefile.ReadConfig(b)
			require.NoError(t, err)
			text += fmt.Sprintf(" %dx%d", c.Width, c.Height)
		default:
			text += fmt.Sprintf(" %s=%v", f.Name, numbersOf(b, f.DType))
		}
	}
	return text
}

func numbersOf(b []byte, dt tensor.DType) (list []float64) {
	for ; len(b) > 0; b = b[dt.Size():] {
		switch dt {
		case tensor.Float32:
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		case tensor.Int64:
			list = append(list, float64(int64(binary.LittleEndian.Uint64(b))))
		default:
			list = append(list, float64(b[0]))
		}
	}
	return list
}

// checkSamples compares what a source is found to be and its samples with what they should be.
func checkSamples(t *testing.T, path, kind, fields string, want ...string) source.Info {
	t.Helper()
	if found, err := source.Detect(path); found != kind {
		t.Errorf("is taken for %q, %v", found, err)
	}
	s := mustOpen(t, path, source.Options{Fields: fields})
	defer s.Close()
	info := s.Info()
	if info.Count != int64(len(want)) || info.Kind != kind {
		t.Errorf("%d samples of kind %s, want %d", info.Count, info.Kind, len(want))
	}
	i := 0
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		again, err := s.(source.Indexed).Sample(int64(i))
		if err != nil || again.Name != sample.Name {
			t.Errorf("sample %d is %q, %v and %q", i, again.Name, err, sample.Name)
		}
		if got := sampleText(t, s, sample); i < len(want) && got != want[i] {
			t.Errorf("sample %d:\n%s, want\n%s", i, got, want[i])
		}
		i++
	}
	return info
}

// openError returns the text of the error of a source that cannot be opened.
func openError(t *testing.T, path string, opts source.Options) string {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	if err == nil {
		s.Close()
		t.Fatal("it can be opened")
	}
	return err.Error()
}

// Objects in datasets of the Hugging Face Hub are lists of boxes and classes, whose names the features have.
func TestHubObjects(t *testing.T) {
	type image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	}
	type objects struct {
		Box      [][]float32 `parquet:"bbox,list"`
		Category []int64     `parquet:"category,list"`
	}
	type row struct {
		Image   image   `parquet:"image"`
		Objects objects `parquet:"objects"`
	}
	for name, features := range map[string]string{
		"sequence": `{"feature": {"bbox": {"feature": {"dtype": "float32", "_type": "Value"}, "length": 4, "_type": "Sequence"}, "category": {"names": ["cat", "dog"], "_type": "ClassLabel"}}, "_type": "Sequence"}`,
		"struct":   `{"bbox": {"feature": {"dtype": "float32", "_type": "Value"}, "_type": "List"}, "category": {"feature": {"names": ["cat", "dog"], "_type": "ClassLabel"}, "_type": "List"}}`,
		"list":     `[{"bbox": [{"dtype": "float32", "_type": "Value"}], "category": {"names": ["cat", "dog"], "_type": "ClassLabel"}}]`,
	} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		f, err := os.Create(path)
		require.NoError(t, err)
		w := parquet.NewGenericWriter[row](f, parquet.KeyValueMetadata("huggingface", `{"info": {"features": {"image": {"_type": "Image"}, "objects": `+features+`}}}`))
		_, err = w.Write([]row{
			{image{[]byte(picture(t, 6, 5)), "a.png"}, objects{[][]float32{{1, 2, 3, 1}, {0, 0, 1, 1}}, []int64{1, 0}}},
			{image{[]byte(picture(t, 6, 5)), "b.png"}, objects{[][]float32{{1, 2, 3, 4}}, []int64{0}}}, {Image: image{[]byte(picture(t, 7, 5)), "c.png"}},
		})
		if err = errors.Join(err, w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, path, source.Options{Fields: "image=images,objects.bbox=boxes:boxes[xywh],objects.category=labels", IsImage: func([]byte) bool { return true }})
		var got []string
		for sample := range s.Samples() {
			got = append(got, sampleText(t, s, sample))
		}
		if want := []string{"0 6x5 boxes=[1 2 3 1 0 0 1 1] labels=[1 0]", "1 6x5 boxes=[1 2 3 4] labels=[0]", "2 7x5 boxes=[] labels=[]"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := classesOf(s.Info()); !slices.Equal(got, []string{"cat", "dog"}) {
			t.Errorf("%s: classes %q", name, got)
		}
		require.NoError(t, s.Close())
	}
}

var objectMutations = flag.Int("object.mutations", 60, "corrupt annotation files a kind that TestCorruptAnnotations reads")

// Annotation files with other bytes are errors or bad samples, or have the values that the source promises.
func TestCorruptAnnotations(t *testing.T) {
	for kind, files := range map[string]map[string]string{
		"coco": {"annotations/instances_val2017.json": `{"images": [{"id": 1, "file_name": "a.png", "width": 6, "height": 5}], "annotations": [
			{"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 1, 3, 2], "area": 6, "iscrowd": 0, "segmentation": [[1, 1, 4, 1, 4, 3, 1, 3]]},
			{"id": 2, "image_id": 1, "category_id": 3, "bbox": [1, 1, 3, 2], "iscrowd": 1, "segmentation": {"size": [5, 6], "counts": "6230009"}},
			{"id": 3, "image_id": 1, "category_id": 3, "bbox": [1, 1, 3, 2], "segmentation": {"size": [5, 6], "counts": [6, 2, 22]}}], ` + cocoCategories + `}`},
		"voc":  {"Annotations/a.xml": vocXML(vocObject("dog", "1 1 6 5", vocPart+"<truncated>1</truncated>"))},
		"yolo": {"data.yaml": "train: images\nnames:\n  0: cat\n  1: dog\nkpt_shape: [1, 3]\n", "labels/a.txt": "1 0.5 0.5 0.5 0.4 0.1 0.2 2\n0 0.5 0.5 1 1 0 0 0\n"},
		"labelme": {"a.json": `{"imagePath": "images/a.png", "imageHeight": 5, "imageWidth": 6, "shapes": [{"label": "dog", "points": [[4, 3], [1, 1]], "shape_type": "rectangle"},
			{"label": "cat", "group_id": 7, "points": [[0, 0], [1, 0], [1, 1], [0, 1]]}, {"label": "x", "points": [[3, 2], [3, 4]], "shape_type": "circle"}]}`},
	} {
		r := rand.New(rand.NewPCG(5, uint64(len(kind))))
		root := t.TempDir()
		for _, name := range []string{"val2017/a.png", "JPEGImages/a.png", "images/a.png"} {
			put(t, root, name, picture(t, 6, 5))
		}
		for range *objectMutations {
			for name, text := range files {
				b := []byte(text)
				for range r.IntN(3) {
					b[r.IntN(len(b))] = `0123456789-.eE{}[]",: nxa`[r.IntN(25)]
				}
				if r.IntN(8) == 0 {
					b = b[:r.IntN(len(b))]
				}
				put(t, root, name, string(b))
			}
			readFields(t, root, source.Options{Kind: kind})
			readFields(t, root, source.Options{Kind: kind, Fields: "images,masks,labels"})
		}
	}
}
