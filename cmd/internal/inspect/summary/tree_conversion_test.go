package summary

import (
	"slices"
	"strings"
	"testing"
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
