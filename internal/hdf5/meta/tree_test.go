package meta

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// describe prints a file as one line per link, for comparison with a text.
func describe(f *File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "superblock %d, user block %d\n", f.Superblock.Version, f.Superblock.Base)
	describeAttrs(&b, "/", f.Root.Attrs)
	for l := range f.Walk() {
		switch d := l.Dataset; {
		case l.Loop:
			fmt.Fprintf(&b, "%s loop\n", l.Path)
		case l.Group != nil:
			fmt.Fprintf(&b, "%s group\n", l.Path)
			describeAttrs(&b, l.Path, l.Group.Attrs)
		case d != nil:
			fmt.Fprintf(&b, "%s %v %v %v %s mappable: %v\n", l.Path, d.Type, d.Dims, d.MaxDims, d.layoutName(), d.Mappable())
			describeAttrs(&b, l.Path, d.Attrs)
		case l.Type != nil:
			fmt.Fprintf(&b, "%s type %v\n", l.Path, l.Type)
		default:
			fmt.Fprintf(&b, "%s %s %s%s\n", l.Path, l.Kind, l.File, l.Target)
		}
	}
	return b.String()
}

func describeAttrs(b *strings.Builder, path string, attrs Attrs) {
	for _, a := range attrs {
		fmt.Fprintf(b, "%s@%s %v %v\n", path, a.Name, a.Type, a.Value.Any())
	}
}

const basicTree = `superblock %d, user block 512
/again uint8 [4 3] [4 3] contiguous mappable: <nil>
/again@mean float32 [0.5 0.25]
/again@name string[3] ascii abc
/c compound{a: int32, b: array(2,) of float64} [2] [2] contiguous mappable: type compound{a: int32, b: array(2,) of float64} cannot be mapped
/ext external o.h5/x
/flag bool [2] [2] contiguous mappable: <nil>
/g group
/g/u1 uint8 [4 3] [4 3] contiguous mappable: <nil>
/g/u1@mean float32 [0.5 0.25]
/g/u1@name string[3] ascii abc
/g/up loop
/i8be big-endian int64 [3] [3] contiguous mappable: type big-endian int64 cannot be mapped: its bytes must be swapped
/soft uint8 [4 3] [4 3] contiguous mappable: <nil>
/soft@mean float32 [0.5 0.25]
/soft@name string[3] ascii abc
/type type float32
/typed float32 [2] [2] contiguous mappable: storage that was never allocated cannot be mapped
`

const stringsTree = `superblock %d, user block 0
/@text string utf-8 héllo
/@texts string utf-8 [a bb]
/classes string utf-8 [2] [2] contiguous mappable: type string utf-8 cannot be mapped
`

const chunksTree = `superblock %d, user block 0
/fixed uint16 [6 4] [6 4] chunked mappable: layout chunked cannot be mapped
/grow uint16 [6 4] [-1 4] chunked mappable: layout chunked cannot be mapped
/single uint16 [6 4] [6 4] chunked with deflate(4) mappable: layout chunked with deflate(4) cannot be mapped
/tree uint16 [6 4] [-1 -1] chunked with shuffle(2), deflate(4) mappable: layout chunked with shuffle(2), deflate(4) cannot be mapped
`

const pagedTree = `superblock %d, user block 0
/fixed uint8 [1030] [1030] chunked mappable: layout chunked cannot be mapped
/grow uint8 [140000] [-1] chunked mappable: layout chunked cannot be mapped
`

const virtualTree = `superblock %d, user block 0
/here int64 [4] [4] contiguous mappable: <nil>
/mixed int64 [20 4] [20 4] virtual mappable: layout virtual cannot be mapped
/rows int64 [6 4] [6 4] virtual mappable: layout virtual cannot be mapped
`

func denseTree() string {
	var b strings.Builder
	b.WriteString("superblock %d, user block 0\n")
	for i := range 12 {
		fmt.Fprintf(&b, "/g%02d group\n", i)
		for j := 0; i == 0 && j < 10; j++ {
			fmt.Fprintf(&b, "/g00@a%d int64 %d\n", j, j)
		}
	}
	return b.String()
}

// The committed files must read the same for ever.
func TestSmallFiles(t *testing.T) {
	trees := map[string]string{"basic": basicTree, "strings": stringsTree, "chunks": chunksTree, "dense": denseTree(),
		"paged": pagedTree, "virtual": virtualTree}
	for name, b := range smallFiles(t) {
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(strings.TrimSuffix(name, ".h5"), "-")
			want := fmt.Sprintf(trees[parts[2]], map[string]int{"old": 0, "new": 3}[parts[1]])
			f, err := Open(bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err)
			if got := describe(f); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	f := mustOpen(t, "testdata/small-new-basic.h5")
	tests := []struct{ path, want, err string }{
		{"/g/u1", "/g/u1", ""},
		{"g/u1/", "/g/u1", ""},
		{"/soft", "/g/u1", ""},
		{"/", "", `"/" is not a dataset`},
		{"/g", "", `"/g" is not a dataset`},
		{"/g/no", "", `group "/g" has no "no"`},
		{"/again/x", "", `"/again" is not a group`},
		{"/ext", "", `external link "/ext" is not followed`},
		{"/g/up/again", "", `"/g/up" leads back to a group that it is inside of`},
	}
	for _, tt := range tests {
		d, err := f.Dataset(tt.path)
		switch {
		case err != nil && err.Error() != tt.err:
			t.Errorf("%s: error %v, want %s", tt.path, err, tt.err)
		case err == nil && d.Path != tt.want:
			t.Errorf("%s: %s, want %s", tt.path, d.Path, tt.want)
		}
	}
}

func TestSpec(t *testing.T) {
	f := mustOpen(t, "testdata/small-old-basic.h5")
	tests := []struct{ path, want, err string }{
		{"/g/u1", "u1 uint8 (3,)", ""},
		{"/flag", "flag bool ()", ""},
		{"/i8be", "i8be int64 ()", ""},
		{"/c", "", "type compound{a: int32, b: array(2,) of float64} is not one of numbers"},
	}
	for _, tt := range tests {
		d, err := f.Dataset(tt.path)
		require.NoError(t, err)
		spec, err := d.Spec()
		if err != nil {
			if err.Error() != tt.err {
				t.Errorf("%s: error %v, want %s", tt.path, err, tt.err)
			}
			continue
		}
		if got := fmt.Sprint(spec.Name, " ", spec.DType, " ", spec.Shape); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
}

// Extents must not overlap: what two structures claim would be read wrongly.
func TestExtentsDisjoint(t *testing.T) {
	dir := generate(t)
	for name := range readAnswers(t, dir) {
		f := mustOpen(t, filepath.Join(dir, name))
		list := f.Extents()
		if len(list) < 3 {
			t.Errorf("%s: only %d extents", name, len(list))
		}
		for i := 1; i < len(list); i++ {
			if a, b := list[i-1], list[i]; a.Offset+a.Size > b.Offset {
				t.Errorf("%s: %+v overlaps %+v", name, a, b)
			}
		}
	}
}
