package kinds

import (
	"archive/zip"
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// An archive ends where its file ends: zeros are padding, and another archive continues it.
func TestTarsAfterEachOther(t *testing.T) {
	a, b := packed(t, "1.bin=x", "1.cls=1"), packed(t, "2.bin=y", "2.cls=2")
	same := packed(t, "1.bin=y", "1.cls=2")
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"two":           {a + b, "1 78 0100000000000000|ab.tar@2/2 79 0200000000000000"},
		"of one key":    {a + same, "1 78 0100000000000000|ab.tar@2/1 79 0200000000000000"},
		"with padding":  {a + strings.Repeat("\x00", 9216) + b + strings.Repeat("\x00", 700), "1 78 0100000000000000|ab.tar@2/2 79 0200000000000000"},
		"three":         {a + packed(t) + b, "1 78 0100000000000000|ab.tar@2/2 79 0200000000000000"},
		"key continued": {packed(t, "1.bin=x", "1.cls=1", "2.bin=x", "2.cls=1") + packed(t, "2.bin=y", "2.cls=2"), "1 78 0100000000000000|2 78 0100000000000000|ab.tar@2/2 79 0200000000000000"},
	} {
		for _, text := range []string{c.text, string(gzipped(t, []byte(c.text)))} {
			_, samples, err := describe(t, write(t, "ab.tar", text), source.Options{Kind: "tar"})
			if got := strings.Join(samples, "|"); got != c.want || err != nil {
				t.Errorf("%s: samples %s, error %v; want %s", name, got, err, c.want)
			}
		}
	}
	images, labels := packed(t, "1.png=P", "2.png=Q"), packed(t, "1.cls=1", "2.cls=2")
	if _, _, err := describe(t, write(t, "ab.tar", images+labels), source.Options{}); err == nil || !strings.Contains(err.Error(), "sample 1 has 1.cls in another archive of the file") {
		t.Errorf("labels after images: error %v", err)
	}
	_, samples, err := describe(t, write(t, "ab.tar", string(gzipped(t, []byte(a)))+string(gzipped(t, []byte(b)))), source.Options{Kind: "tar"})
	if len(samples) != 2 || err != nil {
		t.Errorf("two gzip files: samples %q, %v", samples, err)
	}
}

// Anything but an archive after the end mark is refused, and so is a checksum or an end of the compression that is wrong.
func TestTarsThatEndWrongly(t *testing.T) {
	good := packed(t, "1.bin=x", "1.cls=1")
	gz := string(gzipped(t, []byte(good)))
	crc := []byte(gz)
	crc[len(crc)-6] ^= 1
	for name, c := range map[string]struct{ text, want string }{
		"text after the end":   {good + "more", "after the end mark"},
		"a block after it":     {good + strings.Repeat("words ", 200), "after the end mark"},
		"compressed, as well":  {string(gzipped(t, []byte(good+strings.Repeat("words ", 200)))), "after the end mark"},
		"second without end":   {good + good[:1024], "no end mark"},
		"second cut":           {good + good[:700], "cut short"},
		"checksum":             {string(crc), "checksum"},
		"without its checksum": {gz[:len(gz)-8], "cut short"},
		"half of its trailer":  {gz[:len(gz)-3], "cut short"},
		"bytes after gzip":     {gz + "more", "cut short"},
		"words after gzip":     {gz + "more than ten bytes", "invalid header"},
	} {
		_, _, err := describe(t, write(t, "x.tar", c.text), source.Options{Kind: "tar"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// zipOf returns a zip archive of NAME=CONTENT files.
func zipOf(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		m, err := w.Create(name)
		require.NoError(t, err)
		if _, err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, w.Close())
	return b.String()
}

// No member of an archive is left out because of its place: a sample that is not of one piece, or that names something
// twice, is refused.
func TestSamplesOfAnArchiveInPieces(t *testing.T) {
	for _, c := range []struct {
		files    string
		tar, zip string // the error, or the samples
	}{
		{"0.bin=a 1.bin=b 0.cls=0 1.cls=1", "sample 0 .* follow each other", "0 61 0000000000000000|1 62 0100000000000000"},
		{"a.png=P b.png=Q a.cls=0 b.cls=1", "sample a .* follow each other", "a 50 0000000000000000|b 51 0100000000000000"},
		{"a.png=P b.png=Q a.jpg=R b.jpg=S", "sample a .* follow each other", "a 52 50|b 53 51"},
		{"a.png=P a.cls=0 a.png=Q a.cls=1", "sample a .*a.png twice", "sample a .* twice"},
		{"a.png=P a.cls=0 b.png=P b.cls=0 a.png=Q a.cls=1", "sample a .* follow each other", "sample a .* twice"},
		{"a.png=P a.png=Q a.cls=0", "sample a .*a.png twice", "sample a .*a.png twice"},
		{"a.png=P a.PNG=Q a.cls=0", "sample a .* a.png and a.PNG", "sample a .* a.PNG and a.png"},
		{"a.png=P ./a.png=Q", "sample a .* twice", "sample a .* twice"},
		{"cat/1.png=P cat/2.png=Q cat/1.png=R", "sample cat/1 .* follow each other", "sample cat/1 .* twice"},
		{"a.png=P a.jpg=Q a.cls=0 b.png=R b.jpg=S b.cls=1", "a 50 51 0000000000000000|b 52 53 0100000000000000", "a 51 50 0000000000000000|b 53 52 0100000000000000"},
		{"a.png=P a.jpg=Q a.cls=0 b.png=R b.cls=1", "a 50 51 0000000000000000|b: member .jpg: it is missing", "a 51 50 0000000000000000|b: member .jpg: it is missing"},
		{"a.bin=1 a.d/x.bin=2 a.cls=3 a.d/x.cls=4", "sample a .* follow each other", "a 31 0300000000000000|a.d/x 32 0400000000000000"},
	} {
		files := strings.Fields(c.files)
		checkPieces(t, "tar", packed(t, files...), c.files, c.tar)
		checkPieces(t, "zip", zipOf(t, files...), c.files, c.zip)
	}
}

func checkPieces(t *testing.T, kind, text, files, want string) {
	t.Helper()
	_, samples, err := describe(t, write(t, "x."+kind, text), source.Options{Kind: kind})
	got := strings.Join(samples, "|")
	if err != nil {
		got = err.Error()
	}
	ok := got == want
	if strings.Contains(want, ".*") {
		ok = regexp.MustCompile(want).MatchString(got)
	}
	if !ok {
		t.Errorf("%s of %s: %s; want %s", kind, files, got, want)
	}
}

// Images only whose names share the part before the first dot would be one sample of several images: refused, with what to do.
func TestDottedNamesOfImages(t *testing.T) {
	_, _, err := describe(t, write(t, "x.tar", packed(t, "x1.5.png=P", "x1.6.png=Q")), source.Options{})
	for _, want := range []string{".5.png", "first dot", "replace the dots", "--fields"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
}

// A field is the members with its extension, where samples have several images.
func TestImagesOfASampleByExtension(t *testing.T) {
	path := write(t, "x.tar", packed(t, "a.png=P", "a.jpg=Q", "b.png=R", "b.jpg=S"))
	for flag, want := range map[string]string{
		"jpg":       "images uint8()* image: a 51|b 53",
		"png=mask":  "mask uint8()* image: a 50|b 52",
		"jpg,png":   "jpg uint8()* image,png uint8()* image: a 51 50|b 53 52",
		"jpg,png=m": "jpg uint8()* image,m uint8()* image: a 51 50|b 53 52",
	} {
		fields, samples, err := describe(t, path, source.Options{Fields: flag})
		if got := strings.Join(fields, ",") + ": " + strings.Join(samples, "|"); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", flag, got, err, want)
		}
	}
}

// A zip archive after another program, as of a self-extracting one, is found; a member whose two headers differ is refused.
func TestZipHeaders(t *testing.T) {
	good := zipOf(t, "cat/1.png=P", "dog/2.png=Q")
	s := mustOpen(t, write(t, "x.zip", "#!/bin/sh\nexec unzip $0\n"+good), source.Options{})
	if s.Info().Kind != "zip" || s.Info().Count != 2 {
		t.Errorf("%+v", s.Info())
	}
	s.Close()
	at := strings.LastIndex(good, "cat/1.png")
	_, samples, err := describe(t, write(t, "x.zip", good[:at]+"cau"+good[at+3:]), source.Options{})
	if err != nil || len(samples) != 2 || !strings.Contains(samples[0], "another name in its own header") {
		t.Errorf("%q, %v", samples, err)
	}
}
