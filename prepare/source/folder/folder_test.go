package folder

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// pixels is data that isPixels recognizes as an image.
var pixels = []byte("PIXELS and more")

func isPixels(head []byte) bool { return bytes.HasPrefix(head, []byte("PIXELS")) }

// tree makes files in a new folder; a name that ends in / is a folder, and "name -> target"
// a link.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "photos")
	require.NoError(t, os.Mkdir(root, 0o777))
	for _, f := range files {
		name, target, link := strings.Cut(f, " -> ")
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		switch {
		case err != nil:
		case link:
			if err = os.Symlink(target, path); err != nil && runtime.GOOS == "windows" {
				t.Skipf("no symbolic links here: %v", err)
			}
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o777)
		case strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".md"):
			err = os.WriteFile(path, []byte("words"), 0o666)
		default:
			err = os.WriteFile(path, pixels, 0o666)
		}
		require.NoError(t, err)
	}
	return root
}

func open(t *testing.T, root string) (*Folder, error) {
	t.Helper()
	return Open(context.Background(), rootOf(t, root), root, Options{IsImage: isPixels})
}

// samplesOf opens root and returns "label name" of all samples.
func samplesOf(t *testing.T, root string) (source.Info, []string) {
	t.Helper()
	s, err := open(t, root)
	require.NoError(t, err)
	defer s.Close()
	names, v := []string{}, source.NewValues(2)
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		source.PutInt(v, 1, 0)
		_ = sample.Data.Read(v) // a link that leads nowhere has a label all the same
		names = append(names, fmt.Sprintf("%d %s", binary.LittleEndian.Uint64(v.Get(1)), sample.Name))
	}
	if int64(len(names)) != s.Info().Count {
		t.Errorf("%d samples, but Count is %d", len(names), s.Info().Count)
	}
	return s.Info(), names
}

// classes returns the names of a source's labels.
func classNames(i source.Info) []string {
	for _, f := range i.Fields {
		if f.Classes != nil {
			return f.Classes
		}
	}
	return nil
}

func TestClassFolders(t *testing.T) {
	info, names := samplesOf(t, tree(t,
		"dog/b.jpg", "dog/a.JPEG", "cat/2.png", "cat/10.png", "cat/x/1.jpg", "cat/x-y/1.jpg", "cat/x/deep/0.jpg", "Zebra/z.bmp",
	))
	// The order of torchvision's make_dataset: sorted(os.walk(class)), sorted(names).
	want := []string{
		"0 Zebra/z.bmp", "1 cat/10.png", "1 cat/2.png", "1 cat/x/1.jpg", "1 cat/x-y/1.jpg", "1 cat/x/deep/0.jpg", "2 dog/a.JPEG", "2 dog/b.jpg",
	}
	if !slices.Equal(names, want) {
		t.Errorf("samples %q\nwant %q", names, want)
	}
	if !slices.Equal(classNames(info), []string{"Zebra", "cat", "dog"}) || info.Kind != "imagefolder" || info.Name != "photos" || info.Hints != nil {
		t.Errorf("info %+v", info)
	}
}

func TestUnlabeled(t *testing.T) {
	info, names := samplesOf(t, tree(t, "b.jpg", "a.png", ".hidden.jpg"))
	if !slices.Equal(names, []string{"0 a.png", "0 b.jpg"}) || classNames(info) != nil {
		t.Errorf("samples %q, classes %q", names, classNames(info))
	}
}

func TestByContent(t *testing.T) {
	info, names := samplesOf(t, tree(t,
		"cat/a", "cat/b.dat", "cat/readme.txt", "cat/.DS_Store", "cat/.git/c.jpg", "cat/._a.jpg", "cat/x/note.md", "cat/empty.jpg/", "README.md",
	))
	if !slices.Equal(names, []string{"0 cat/a", "0 cat/b.dat"}) {
		t.Errorf("samples %q", names)
	}
	if info.Ignored.Count != 3 || info.Ignored.First != "README.md" {
		t.Errorf("ignored %+v, want 3, the first README.md", info.Ignored)
	}
}

// A name that promises an image is a sample, so that nothing is lost without a word.
func TestNamePromisesImage(t *testing.T) {
	root := tree(t, "cat/a.jpg")
	for _, name := range []string{"b.jpg", "c.heic"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "cat", name), []byte("words"), 0o666))
	}
	if _, names := samplesOf(t, root); len(names) != 3 {
		t.Errorf("samples %q", names)
	}
}

func TestLinks(t *testing.T) {
	root := tree(t, "cat/a.jpg", "dog -> cat", "cat/b.jpg -> a.jpg", "cat/lost.png -> nowhere.png", "cat/lost -> nowhere")
	info, names := samplesOf(t, root)
	want := []string{"0 cat/a.jpg", "0 cat/b.jpg", "0 cat/lost.png", "1 dog/a.jpg", "1 dog/b.jpg", "1 dog/lost.png"}
	if !slices.Equal(names, want) || info.Ignored.Count != 2 {
		t.Errorf("samples %q, ignored %+v", names, info.Ignored)
	}
	s, err := open(t, root)
	require.NoError(t, err)
	for sample := range s.Samples() {
		v := source.NewValues(2)
		err := sample.Data.Read(v)
		data := v.Get(0)
		lost := strings.HasSuffix(sample.Name, "lost.png")
		if lost && (err == nil || !strings.Contains(err.Error(), "leads nowhere")) || !lost && (err != nil || !bytes.Equal(data, pixels)) {
			t.Errorf("%s: %q, %v", sample.Name, data, err)
		}
	}
}

func TestErrors(t *testing.T) {
	cases := []struct {
		name  string
		files []string
		want  string
	}{
		{"empty", nil, "holds no images; it is empty"},
		{"only words", []string{"a.md", "b/c.txt"}, "holds no images; it holds 2 other files, such as a.md"},
		{"only empty classes", []string{"a/", "b/"}, "holds no images; it is empty"},
		{"an empty class", []string{"cat/a.jpg", "dog/", "eel/x.txt"}, "found no images for the classes dog, eel; remove these folders or fill them"},
		{"mixed", []string{"cat/a.jpg", "b.jpg"}, "images next to folders (b.jpg next to cat/); put every image into the folder of its class, or the folders elsewhere"},
		{"loop", []string{"cat/a.jpg", "cat/x/loop -> .."}, `folder "cat/x/loop" is a link to a folder that it is in; remove it`},
		{"loop to the root", []string{"cat/a.jpg", "cat/loop -> .."}, "is a link to a folder that it is in; remove it"},
		{"a link that leads outside", []string{"cat/a.jpg", "cat/loop -> ../.."}, `link "cat/loop": it is outside of the source's folder`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, tree(t, c.files...))
			if err == nil || !strings.HasPrefix(err.Error(), "source ") || !strings.Contains(filepath.ToSlash(err.Error()), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestNoFolder(t *testing.T) {
	root := tree(t, "a.jpg")
	for path, want := range map[string]string{
		filepath.Join(root, "missing"): "there is no such folder",
		filepath.Join(root, "a.jpg"):   "is a file, not a folder of images",
	} {
		if _, err := open(t, path); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

func TestCancelledScan(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	root := tree(t, "cat/a.jpg")
	if _, err := Open(ctx, rootOf(t, root), root, Options{IsImage: isPixels}); !errors.Is(err, stop) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestNestedHint(t *testing.T) {
	info, _ := samplesOf(t, tree(t, "old/cat/a.jpg", "old/dog/a.jpg", "new/cat/a.jpg"))
	if len(info.Hints) != 1 || !strings.Contains(info.Hints[0], "the classes are new, old") {
		t.Errorf("hints %q", info.Hints)
	}
}

// Any sample can be read by its number, and is the same as in order.
func TestSampleByPlace(t *testing.T) {
	s, err := open(t, tree(t, "cat/a.jpg", "cat/b/c.jpg", "cat/d.jpg", "dog/a.jpg"))
	require.NoError(t, err)
	i := int64(0)
	for want := range s.Samples() {
		if got, err := s.Sample(i); err != nil || got.Name != want.Name {
			t.Errorf("sample %d is %s, %v; want %s", i, got.Name, err, want.Name)
		}
		if name, err := s.SampleName(i); err != nil || name != want.Name {
			t.Errorf("sample %d has the name %s, %v; want %s", i, name, err, want.Name)
		}
		i++
	}
}

func TestFolderVanishes(t *testing.T) {
	root := tree(t, "cat/a.jpg", "dog/a.jpg")
	s, err := open(t, root)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "dog")))
	samples, failure := 0, error(nil)
	for _, err := range s.Samples() {
		samples++
		failure = err
	}
	if samples != 2 || failure == nil || !strings.Contains(failure.Error(), `folder "dog"`) {
		t.Errorf("%d samples, then %v", samples, failure)
	}
}

// Seen reports the progress of a large folder, and is not called for a small one.
func TestFolderTellsHowFar(t *testing.T) {
	for n, want := range map[int]int64{source.QuickScan - 1: 0, source.QuickScan + 7: source.QuickScan + 7} {
		reported := int64(0)
		s := &Folder{ctx: t.Context(), seen: func(n int64) { reported += n }}
		for range n {
			s.found(1)
		}
		if reported != want || s.info.Count != int64(n) {
			t.Errorf("reported %d of %d images, want %d", reported, n, want)
		}
	}
}

// Tables, arrays and files with the names of images may hold labels, and are left out only if that was asked for.
func TestDataBesideImages(t *testing.T) {
	for other, want := range map[string]string{
		"train/labels.csv":      "train/labels.csv would be left out; if it names the images, with their labels or captions, give ROOT/train/labels.csv as the source",
		"train/x.npz":           "train/x.npz would be left out",
		"train/cat/more/b.JSON": "",
		"metadata.jsonl":        "metadata.jsonl would be left out",
		"train/cat/a.txt":       "train/cat/a.txt has the name of a.jpg, and would be left out; labels, boxes",
		"train/cat/a.jpg.json":  "train/cat/a.jpg.json has the name of a.jpg",
		"train/cat/a.xml":       "--from imagefolder takes the images alone",
		"train/cat/b.txt":       "train/cat/b.txt names a.jpg, and would be left out; labels, boxes",
		"labels.txt":            "--from imagefolder takes the images alone",
		"train/annotations.xml": "train/annotations.xml names train/cat/a.jpg",
		"README.md":             "",
		"train/cat/.a.txt":      "",
		"train/cat/Thumbs.db":   "",
	} {
		root := tree(t, "train/cat/a.jpg")
		path := filepath.Join(root, filepath.FromSlash(other))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		text := "file,label\na.jpg,1\n"
		if !strings.HasPrefix(other, "train/cat/") {
			text = "{\"images\": [{\"file_name\": \"train/cat/a.jpg\"}]} <filename>train/cat/a.jpg</filename>"
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, err := open(t, root)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), strings.ReplaceAll(want, "ROOT", root)) {
			t.Errorf("%s: error %v, want %q", other, err, want)
		}
		s, err := Open(t.Context(), rootOf(t, root), root, Options{Alone: true})
		if err != nil {
			t.Errorf("%s, the images alone: %v", other, err)
		} else if s.Info().Count != 1 {
			t.Errorf("%s: %d images", other, s.Info().Count)
		}
	}
}

// Text files that name no image of the folder are ignored, as in torchvision's ImageFolder.
func TestTextsBesideImages(t *testing.T) {
	root := tree(t, "cat/a.jpg", "../outside.jpg")
	for name, text := range map[string]string{
		"README.txt":     "Photos of cats, see other.jpg, ../outside.jpg and /etc/passwd.png.\n",
		"cat/notes.json": "{\"camera\": \"D90\", \"thumb\": \"b.jpg\"}",
		"Thumbs.db":      "a.jpg",
		"empty.xml":      "",
		"far.txt":        strings.Repeat(" ", 1<<16) + "cat/a.jpg",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o666))
	}
	if info, names := samplesOf(t, root); len(names) != 1 || info.Ignored.Count != 5 {
		t.Errorf("samples %q, ignored %+v", names, info.Ignored)
	}
}

// splitsIn returns what a source says of splits, and "split name" of its samples.
func splitsIn(t *testing.T, s source.Source) (splits, samples []string) {
	t.Helper()
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		samples = append(samples, sample.Split+" "+sample.Name)
	}
	return s.Info().Splits, samples
}

// rootOf opens the files of the source at path.
func rootOf(t testing.TB, path string) *vfs.Root {
	t.Helper()
	root, err := source.OpenRoot(path, source.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}
