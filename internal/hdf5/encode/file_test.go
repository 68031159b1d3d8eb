package encode

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// whole returns a file of objects, whose elements would follow the head.
func whole(t *testing.T, objects []Object) []byte {
	t.Helper()
	end, err := Place(objects, HeadSize)
	require.NoError(t, err)
	head, body, err := File(end, objects, nil)
	require.NoError(t, err)
	return append(append(head, make([]byte, end-HeadSize)...), body...)
}

// Chunk trees of one to three levels list the chunks that they were built from.
func TestChunkTrees(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 64 * 64, 64*64 + 1, 9000} {
		for _, shape := range [][]int64{{}, {3, 2}} {
			per := 5
			o := Object{
				Path: "/g/x", Element: Element{DType: tensor.Int16}, Dims: append([]int64{int64(max(0, n*per-2))}, shape...),
				Chunked: &Chunked{Recipe: Recipe{Record: 2, Elem: 2, Records: per, Level: 3, Shuffle: true}},
			}
			for i := range n {
				o.Chunked.Stored = append(o.Chunked.Stored, Stored{At: HeadSize, Size: int64(1 + i%40), Mask: uint32(i % 3)})
			}
			data := whole(t, []Object{{Path: "/pad", Element: Element{DType: tensor.Uint8}, Dims: []int64{100}}, o})
			f, err := meta.Open(bytes.NewReader(data), int64(len(data)))
			require.NoError(t, err)
			d, err := f.Dataset("/g/x")
			require.NoError(t, err)
			table, err := d.Chunks()
			if err != nil || len(table.Chunks) != n {
				t.Fatalf("%d chunks: found %d, error %v", n, len(table.Chunks), err)
			}
			for i, c := range table.Chunks {
				if c.Coord[0] != int64(i*per) || c.Size != int64(1+i%40) || c.Mask != uint32(i%3) || c.Offset != HeadSize {
					t.Fatalf("chunk %d of %d is %+v", i, n, c)
				}
			}
		}
	}
}

// Contiguous objects are aligned as they ask, one after the other.
func TestPlace(t *testing.T) {
	u8 := Element{DType: tensor.Uint8}
	objects := []Object{
		{Path: "/a", Element: u8, Dims: []int64{5000}, Align: 4096}, {Path: "/b", Element: u8, Dims: []int64{3}, Align: 8},
		{Path: "/c", Element: u8, Dims: []int64{0}, Align: 8}, {Path: "/d", Element: u8, Dims: []int64{1}, Align: 4096},
		{Path: "/e", Element: u8, Dims: []int64{9}, Align: 8},
	}
	end, err := Place(objects, HeadSize)
	got := fmt.Sprint(objects[0].At, objects[1].At, objects[2].At, objects[3].At, objects[4].At, end, err)
	if want := "4096 48 0 12288 56 12289 <nil>"; got != want {
		t.Errorf("placed at %s, want %s", got, want)
	}
}

func TestFileErrors(t *testing.T) {
	u8 := Element{DType: tensor.Uint8}
	for name, objects := range map[string][]Object{
		"two of one name":    {{Path: "/a", Element: u8}, {Path: "/a", Element: u8}},
		"a dataset as group": {{Path: "/a", Element: u8}, {Path: "/a/b", Element: u8}},
		"no name":            {{Path: "/a//b", Element: u8}},
		"no type":            {{Path: "/a"}},
		"too few bytes":      {{Path: "/a", Element: u8, Dims: []int64{3}, Data: []byte{1}}},
		"too many axes":      {{Path: "/a", Element: u8, Dims: make([]int64, 33)}},
		"long attribute":     {{Path: "/a", Element: u8, Attributes: []Attribute{Texts("x", []string{string(make([]byte, 70000))})}}},
		"short attribute":    {{Path: "/a", Element: u8, Attributes: []Attribute{{Name: "x", Element: u8, Count: 2, Data: []byte{1}}}}},
		"chunks missing":     {{Path: "/a", Element: u8, Dims: []int64{9}, Chunked: &Chunked{Recipe: Recipe{Record: 1, Elem: 1, Records: 2, Level: 1}}}},
	} {
		if _, _, err := File(HeadSize, objects, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
