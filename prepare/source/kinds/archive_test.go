package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

func TestWebDataset(t *testing.T) {
	path := write(t, "x.tar", packed(t,
		"./a/1.jpg=P1", "./a/1.cls=2", "./a/1.txt=one", `./a/1.json={"n": 5, "m": {"k": [1, 2]}}`, "./a/1.depth.png=D1", "./a/._1.jpg=junk",
		"./a/2.PNG=P2", "./a/2.cls=x", "./a/2.depth.png=D2", "./a/3.jpg=P3", "./a/3.cls=3", "link.jpg -> a/1.jpg",
	))
	fields, samples, err := describe(t, path, source.Options{Fields: "jpg,cls:uint8,txt=caption,json.n:int8,json.m.k=k:uint8[*],depth.png"})
	require.NoError(t, err)
	if got, want := strings.Join(fields, "|"), "images uint8()* image|labels uint8()|caption uint8()* utf-8|n int8()|k uint8()*|depth uint8()* image"; got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	want := []string{
		fmt.Sprintf("a/1 %x 02 %x 05 0102 %x", "P1", "one", "D1"), `a/2: member .cls: "x" is not a value of type uint8`, "a/3: member .json.n: it is missing",
	}
	if strings.Join(samples, "\n") != strings.Join(want, "\n") {
		t.Errorf("samples\n%s\nwant\n%s", strings.Join(samples, "\n"), strings.Join(want, "\n"))
	}
}

// Names of fields and classes, where nothing is asked for.
func TestWebDatasetDefaults(t *testing.T) {
	path := write(t, "x.tar", packed(t, "1.jpg=P", "1.cls=dog", "1.json={}", "1.bin=xyz", "2.png=Q", "2.cls=cat", "2.json={}", "2.bin="))
	s := mustOpen(t, path, source.Options{})
	defer s.Close()
	if got := strings.Join(classesOf(s.Info()), " "); got != "cat dog" {
		t.Errorf("classes %s", got)
	}
	fields, samples, err := describe(t, path, source.Options{})
	if err != nil || strings.Join(fields, "|") != "images uint8()* image|labels int64()|json uint8()* utf-8|bin uint8()*" || len(samples) != 2 {
		t.Errorf("fields %q, samples %q, %v", fields, samples, err)
	}
}

func TestImagesInArchive(t *testing.T) {
	for _, c := range []struct {
		files   []string
		classes string // or a part of the error
		names   string
	}{
		{[]string{"p/cat/1.jpg=x", "p/dog/a/2.png=y", "p/README.md=words"}, "cat dog", "p/cat/1.jpg p/dog/a/2.png"},
		{[]string{"cat/1.jpg=x", "dog/2.png=y"}, "cat dog", "cat/1.jpg dog/2.png"},
		{[]string{"p/1.jpg=x", "p/2.a.png=y"}, "", "p/1.jpg p/2.a.png"},
		{[]string{"1.jpg=x"}, "", "1.jpg"},
		{[]string{"p/1.jpg=x", "p/dog/2.png=y"}, "images next to folders", ""},
	} {
		s, err := Open(t.Context(), write(t, "x.tar", packed(t, c.files...)), source.Options{})
		if err != nil {
			if c.names != "" || !strings.Contains(err.Error(), c.classes) {
				t.Errorf("%q: %v", c.files, err)
			}
			continue
		}
		var names []string
		for sample := range s.Samples() {
			names = append(names, sample.Name)
		}
		if got := strings.Join(classesOf(s.Info()), " "); got != c.classes || strings.Join(names, " ") != c.names || s.Info().Count != int64(len(names)) {
			t.Errorf("%q: classes %q, samples %q, count %d", c.files, got, names, s.Info().Count)
		}
	}
}

// Archives with names that lead out of them are refused.
func TestArchivesThatAreRefused(t *testing.T) {
	good := packed(t, "1.jpg=x", "1.cls=1")
	for want, text := range map[string]string{
		`member "../x.jpg" leads outside`:               packed(t, "../x.jpg=x"),
		`member "/etc/x.jpg" leads outside`:             packed(t, "/etc/x.jpg=x"),
		`member "a/../../x.jpg" leads outside`:          packed(t, "a/../../x.jpg=x"),
		`member "..\\x.jpg" leads outside`:              packed(t, `..\x.jpg=x`),
		`member "C:\\x.jpg" leads outside`:              packed(t, `C:\x.jpg=x`),
		"the archive is cut short: it has no end mark":  good[:700],
		"the archive is cut short: it has no end mark ": good[:1024],
		"the archive is cut short: unexpected EOF":      good[:300],
		"no tar archive, or corrupt":                    strings.Repeat("a,b\n1,2\n", 200),
		"holds no files":                                packed(t),
	} {
		if _, _, err := describe(t, write(t, "x.tar", text), source.Options{}); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Several archives of a glob are one source, and their keys may be the same.
func TestSeveralArchives(t *testing.T) {
	path := write(t, "a.tar", packed(t, "1.jpg=x", "1.cls=1"))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "b.tar"), []byte(packed(t, "1.jpg=y", "1.cls=2")), 0o666))
	_, samples, err := describe(t, filepath.Join(filepath.Dir(path), "*.tar"), source.Options{})
	if err != nil || len(samples) != 2 || !strings.Contains(samples[1], "/b.tar/1 ") {
		t.Errorf("samples %q, %v", samples, err)
	}
}

// An archive whose folders hold folders says that these are not the classes.
func TestNestedFoldersOfAnArchive(t *testing.T) {
	for want, names := range map[string][]string{
		"the classes are new, old, and all": {"ds/old/cat/a.jpg", "ds/old/dog/a.jpg", "ds/new/cat/a.jpg"},
		"":                                  {"ds/cat/a.jpg", "ds/dog/more/a.jpg"},
	} {
		path := filepath.Join(t.TempDir(), "x.tar")
		writeTar(t, path, names...)
		s := mustOpen(t, path, source.Options{})
		if hints := strings.Join(s.Info().Hints, "|"); !strings.HasPrefix(hints, want) || (hints == "") != (want == "") {
			t.Errorf("%q: hints %q", names, hints)
		}
		require.NoError(t, s.Close())
	}
}

func FuzzTar(f *testing.F) {
	f.Add([]byte(packed(f, "1.jpg=x", "1.cls=1", "1.json={\"a\":1}", "1.npy=\x93NUMPY")))
	f.Add([]byte(packed(f, "a/1.jpg=x", "b/2.jpg=y", "l -> a/1.jpg")))
	f.Add([]byte(packed(f, "../1.jpg=x"))[:600])
	f.Fuzz(func(t *testing.T, data []byte) { readAllOf(t, "tar", "x.tar", data) })
}
