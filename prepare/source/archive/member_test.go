package archive

import (
	"archive/tar"
	"path/filepath"
	"strings"
	"testing"
)

// A name never leads out of the archive, and its key never has the extension.
func FuzzMemberName(f *testing.F) {
	for _, s := range []string{"a/b.jpg", "../x", "/x", "a/../../x", `..\x`, "./a", "C:x", "a.b/c.d.e", ".x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := memberName(name)
		if err != nil {
			return
		}
		if !filepath.IsLocal(filepath.FromSlash(clean)) && clean != "" {
			t.Fatalf("%q becomes %q, which is elsewhere", name, clean)
		}
		if key, ext := splitKey(clean); ext != "" && !strings.EqualFold(key+"."+ext, clean) {
			t.Fatalf("%q is split into %q and %q", clean, key, ext)
		}
	})
}

// A sparse file can claim any length.
func TestSparseMember(t *testing.T) {
	h := &tar.Header{Name: "1.jpg", Size: 1 << 40, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"GNU.sparse.major": "1"}}
	if err := checkMember(h); err == nil || !strings.Contains(err.Error(), "sparse") {
		t.Errorf("error %v", err)
	}
	h.PAXRecords = nil
	if err := checkMember(h); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("error %v", err)
	}
}

// Keys are those of WebDataset: a hidden file has none.
func TestSplitKey(t *testing.T) {
	for name, want := range map[string][2]string{
		"a.jpg":         {"a", "jpg"},
		"d.e/a.Seg.PNG": {"d.e/a", "seg.png"},
		".jpg":          {".jpg", ""},
		"d/.jpg":        {"d/.jpg", ""},
		"d/a":           {"d/a", ""},
		"d/a.":          {"d/a", ""},
	} {
		if key, ext := splitKey(name); [2]string{key, ext} != want {
			t.Errorf("%q is split into %q and %q, want %q", name, key, ext, want)
		}
	}
}
