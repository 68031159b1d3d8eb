package folder

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestSplitFolders(t *testing.T) {
	root := tree(t, "test/cat/a.jpg", "train/dog/b.jpg", "train/cat/c.jpg", "train/eel/deep/d.jpg", "val/dog/", "val/cat/e.jpg", "test/notes.txt")
	s, err := open(t, root)
	require.NoError(t, err)
	splits, samples := splitsIn(t, s)
	want := []string{"train train/cat/c.jpg", "train train/dog/b.jpg", "train train/eel/deep/d.jpg", "val val/cat/e.jpg", "test test/cat/a.jpg"}
	if !slices.Equal(samples, want) || !slices.Equal(splits, []string{"train", "val", "test"}) {
		t.Errorf("splits %q, samples %q", splits, samples)
	}
	info := s.Info()
	if got := strings.Join(classNames(info), " "); got != "cat dog eel" || info.Count != 5 || info.Ignored.Count != 1 || info.Hints != nil {
		t.Errorf("classes %s, info %+v", got, info)
	}
	for i, name := range want {
		if sample, err := s.Sample(int64(i)); err != nil || sample.Split+" "+sample.Name != name {
			t.Errorf("sample %d: %q %q, %v", i, sample.Split, sample.Name, err)
		}
	}
	if _, names := samplesOf(t, root); names[2] != "2 train/eel/deep/d.jpg" || names[4] != "0 test/cat/a.jpg" {
		t.Errorf("labels %q", names)
	}
}

func TestSplitFoldersWithoutClasses(t *testing.T) {
	s, err := open(t, tree(t, "validation/a.jpg", "train/b.jpg"))
	require.NoError(t, err)
	splits, samples := splitsIn(t, s)
	if info := s.Info(); classNames(info) != nil || !slices.Equal(splits, []string{"train", "validation"}) || !slices.Equal(samples, []string{"train train/b.jpg", "validation validation/a.jpg"}) {
		t.Errorf("info %+v, samples %q", info, samples)
	}
}

// One folder that is called as a split among others is a class, such as trains among vehicles.
func TestClassCalledAsSplit(t *testing.T) {
	for _, files := range [][]string{{"bus/a.jpg", "train/b.jpg"}, {"train/bus/a.jpg", "train/dev/b.jpg", "train/train/c.jpg"}} {
		s, err := open(t, tree(t, files...))
		require.NoError(t, err)
		if got := classNames(s.Info()); len(got) != len(files) || !slices.Contains(got, "train") {
			t.Errorf("classes %q", got)
		}
	}
}

func TestSplitFoldersThatAreRefused(t *testing.T) {
	for want, files := range map[string][]string{
		"the images in train are in class folders, those in test in none": {"train/cat/a.jpg", "test/a.jpg"},
		"found no images in val":                                              {"train/cat/a.jpg", "val/cat/"},
		"found no images in val; remove":                                      {"train/a.jpg", "val/"},
		"found no images for the classes dog":                                 {"train/cat/a.jpg", "train/dog/", "val/cat/a.jpg"},
		"images next to folders (val/b.jpg next to val/cat":                   {"train/cat/a.jpg", "val/cat/a.jpg", "val/b.jpg"},
		"holds no images":                                                     {"train/", "val/"},
		"the folders train, val have names of splits, and extra do not; move": {"train/cat/a.jpg", "val/cat/a.jpg", "extra/b.jpg"},
	} {
		if _, err := open(t, tree(t, files...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", files, err, want)
		}
	}
}
