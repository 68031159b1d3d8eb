package inspect

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
)

func TestFieldList(t *testing.T) {
	at := func(paths ...string) (list []*Node) {
		for _, p := range paths {
			list = append(list, &Node{Path: p})
		}
		return list
	}
	for _, c := range []struct {
		group []*Node
		all   bool
		want  string
	}{
		{at("/images", "/labels"), true, ""},
		{at("/images", "/labels"), false, "images,labels"},
		{at("/train/images", "/y"), true, "train/images=images,y"},
		{at("/my images"), true, "my images"},
		{at("/g/-x", "/g/é"), false, "g/-x,g/é"},
	} {
		if got := fieldList(c.group, c.all); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestConvertedPaths(t *testing.T) {
	group := func(path string) []*Node { return []*Node{{Path: path}} }
	for _, c := range []struct {
		groups [][]*Node
		want   []string
	}{
		{[][]*Node{group("/x")}, []string{"d/f-mapped"}},
		{[][]*Node{group("/train/x"), group("/test/x")}, []string{"d/f-train", "d/f-test"}},
		{[][]*Node{group("/x"), group("/y")}, []string{"d/f-mapped-1", "d/f-mapped-2"}},
		{[][]*Node{group("/a/b/x"), group("/y"), group("/y/z")}, []string{"d/f-a-b", "d/f-mapped-2", "d/f-y"}},
	} {
		var got []string
		for i := range c.groups {
			got = append(got, strings.TrimSuffix(convertedPath("d/f.h5", c.groups, i), ".h5"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A file with data that cannot be used in place has conversions, and its datasets have their storage.
func TestConversionsOfSmallFiles(t *testing.T) {
	s, err := Describe(small("new-chunks"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Conversions) == 0 {
		t.Fatal("no command")
	}
	for _, m := range s.Conversions {
		if m.Gain < 1 || m.Records == 0 || len(m.Datasets) == 0 || !strings.HasPrefix(m.Command, "preprocess "+small("new-chunks")) {
			t.Errorf("%+v", m)
		}
	}
	for _, n := range s.Tree {
		if n.Kind != "dataset" {
			continue
		}
		if n.Storage == nil || n.Storage.Header <= 0 || n.Storage.Links < 1 || (n.Layout == "chunked") != (n.Storage.Chunks != nil) {
			t.Errorf("%s: %+v", n.Path, n.Storage)
		}
	}
}

// The summary lists a dataset that penstock does not read with its place, the reason, and the command
// that rewrites it. The command that converts the rest leaves it out.
func TestRepackOfWhatIsNotRead(t *testing.T) {
	path := h5test.File(t, `
    p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    p.set_chunk((10,))
    p.set_filter(h5py.h5z.FILTER_NBIT)
    h5py.Dataset(h5py.h5d.create(f.id, b"offset", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((100,)), p))[:] = np.arange(100)
    f.create_dataset("packed", data=np.arange(100), chunks=(10,), compression="gzip")
    f.create_dataset("names", data=["a"] * 100)
`)
	s, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	to := strings.TrimSuffix(path, ".h5")
	want := []Repack{{"h5repack -f NONE " + path + " " + to + "-repacked.h5", []string{"offset"}, []string{s.Tree[2].Storage.Unread}}}
	if !reflect.DeepEqual(s.Repacks, want) || !strings.HasPrefix(want[0].Reasons[0], "filter nbit(") {
		t.Errorf("%+v, want %+v", s.Repacks, want)
	}
	if c := s.Tree[2].Storage.Chunks; c == nil || c.Stored != 10 || s.Tree[2].Storage.Stored == 0 {
		t.Errorf("%+v", s.Tree[2].Storage)
	}
	if len(s.Conversions) != 1 || s.Conversions[0].Command != "preprocess "+path+" "+to+"-mapped.h5 --fields packed" {
		t.Errorf("%+v", s.Conversions)
	}
	var b strings.Builder
	if err := s.Render(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"\nTo read it\n  h5repack -f NONE ", "      offset: filter nbit(", "is not read: filter nbit(", "is not read: type string utf-8"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, &b)
		}
	}
}

func TestRoundFigures(t *testing.T) {
	for _, c := range [][2]string{
		{rounded(1.04), "1.0"}, {rounded(9.94), "9.9"}, {rounded(64), "64"}, {rounded(2678), "2,700"}, {rounded(159375), "160,000"},
		{nanos(412), "410 ns"}, {nanos(890), "890 ns"}, {nanos(25_400), "25 us"}, {nanos(20_175_312), "20 ms"}, {nanos(3), "3 ns"}, {nanos(0), "0 ns"}, {nanos(2.24e9), "2.2 s"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
