package prepare

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// cropped returns a pipeline that has a head, which it returns, too, and the tail.
func cropped(t *testing.T) (whole, head, tail *transforms.Pipeline) {
	t.Helper()
	whole, err := transforms.Compose(transforms.Resize{Size: []int{24}}, transforms.CenterCrop{Size: []int{20}},
		transforms.RandomCrop{Size: []int{16}}, transforms.RandomHorizontalFlip{}, transforms.ToTensor{})
	require.NoError(t, err)
	if head, tail, err = whole.Split(); err != nil {
		t.Fatal(err)
	}
	return whole, head, tail
}

// The pixels of a raw source are the records of the dataset that preprocess makes, and the tail makes the batches of the
// whole pipeline of them.
func TestPixelsOfFiles(t *testing.T) {
	whole, head, tail := cropped(t)
	for name, path := range map[string]string{"folder": rawtest.Folder(t, 21), "tar": tarOf(t, rawtest.Folder(t, 9)), "splits": rawSources(t)["splits"]} {
		t.Run(name, func(t *testing.T) {
			src, err := Open(t.Context(), path, OpenOptions{Head: head})
			require.NoError(t, err)
			defer src.Close()
			files, err := Open(t.Context(), path, OpenOptions{})
			require.NoError(t, err)
			defer files.Close()
			if src.ID() != files.ID() {
				t.Error("pixels have the identity of other records")
			}
			c := plain(t, path)
			c.Images.Resize, c.Images.Crop = []int{24}, []int{20}
			mustRun(t, c)
			ds, err := mmapds.Open(c.Dest)
			require.NoError(t, err)
			defer ds.Close()
			compare(t, src, ds)
			want := batches(t, files, whole)
			if !bytes.Equal(batches(t, src, tail), want) || !bytes.Equal(batches(t, ds, tail), want) {
				t.Error("the batches differ")
			}
			require.NoError(t, src.Use(ds, nil, nil))
			compare(t, src, src)
			c.Images.Resize, c.Images.Crop, c.Images.Transforms, c.Dest = nil, nil, src.Transforms(), c.Dest+"2"
			mustRun(t, c)
			checkSame(t, c.Dest, strings.TrimSuffix(c.Dest, "2"))
		})
	}
}

func TestPixelRefusals(t *testing.T) {
	_, head, tail := cropped(t)
	table := rawSources(t)["csv of images"]
	deep := rawtest.Folder(t, 4)
	rawtest.Put(t, deep, "cat/0.pgm", append([]byte("P5 40 40 65535\n"), make([]byte, 3200)...))
	for _, c := range []struct {
		path string
		o    OpenOptions
		want string
	}{
		{rawtest.Folder(t, 4), OpenOptions{Head: tail}, "its transforms are random"},
		{rawtest.Folder(t, 4), OpenOptions{Head: head, Fields: []string{"labels"}}, `the field "images" is not loaded`},
		{table, OpenOptions{Head: head, Columns: "file,boxes:boxes"}, `the field "boxes" lies on images`},
		{rawtest.Rows(t, 9), OpenOptions{Head: head}, "it has no image files"},
		{deep, OpenOptions{Head: head}, "and not 8 bits"},
	} {
		src, err := Open(t.Context(), c.path, c.o)
		if err == nil {
			src.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.path, err, c.want)
		}
	}
}

// The bytes of all pixels are known before a record is decoded.
func TestPixelBytes(t *testing.T) {
	_, head, _ := cropped(t)
	src, err := Open(t.Context(), rawtest.Folder(t, 21), OpenOptions{})
	require.NoError(t, err)
	defer src.Close()
	if n, err := src.PixelBytes(head); err != nil || n != 21*3*20*20 {
		t.Errorf("%d, %v", n, err)
	}
	if src.Specs()[0].Content != tensor.Image || json.Valid(src.Transforms()) {
		t.Error("asking for the bytes changed the source")
	}
}
