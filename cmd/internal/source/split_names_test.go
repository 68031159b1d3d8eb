package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSplitsOfFiles(t *testing.T) {
	for files, want := range map[string]string{
		"d/test-00000-of-00001.parquet d/train-00000-of-00002.parquet d/train-00001-of-00002.parquet": "train=2 test=1",
		"d/imagenet-val-00.tar d/imagenet-train-00.tar d/imagenet-train-01.tar":                       "train=2 val=1",
		"d/Train.csv d/Validation.csv d/test.csv":                                                     "Train=1 Validation=1 test=1",
		"train/0.tar val/0.tar":       "train=1 val=1",
		"d/train-0.tar d/train-1.tar": "", // one split is none
		"d/train.csv d/extra.csv":     "",
		"d/trainer.csv d/latest.csv":  "",
		"d/train_test.csv d/test.csv": "", // which of them is it?
		"d/0.tar d/1.tar":             "",
	} {
		list := strings.Fields(files)
		s := splitsOfFiles(list)
		var got []string
		for _, name := range s.names {
			n := 0
			for _, f := range list {
				if s.of[f] == name {
					n++
				}
			}
			got = append(got, name+"="+string(rune('0'+n)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: splits %q, want %q", files, got, want)
		}
	}
}

// splitsAndNames returns what a source says of splits, and "split name" of its samples.
func splitsAndNames(t *testing.T, s Source) (splits, samples []string) {
	t.Helper()
	for sample, err := range s.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample.Split+" "+sample.Name)
	}
	return s.Info().Splits, samples
}

func TestSplitFolders(t *testing.T) {
	root := tree(t, "test/cat/a.jpg", "train/dog/b.jpg", "train/cat/c.jpg", "train/eel/deep/d.jpg", "val/dog/", "val/cat/e.jpg", "test/notes.txt")
	s, err := open(t, root)
	if err != nil {
		t.Fatal(err)
	}
	splits, samples := splitsAndNames(t, s)
	want := []string{"train train/cat/c.jpg", "train train/dog/b.jpg", "train train/eel/deep/d.jpg", "val val/cat/e.jpg", "test test/cat/a.jpg"}
	if !slices.Equal(samples, want) || !slices.Equal(splits, []string{"train", "val", "test"}) {
		t.Errorf("splits %q, samples %q", splits, samples)
	}
	info := s.Info()
	if got := strings.Join(info.classes(), " "); got != "cat dog eel" || info.Count != 5 || info.Ignored.Count != 1 || info.Hints != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	splits, samples := splitsAndNames(t, s)
	if info := s.Info(); info.classes() != nil || !slices.Equal(splits, []string{"train", "validation"}) || !slices.Equal(samples, []string{"train train/b.jpg", "validation validation/a.jpg"}) {
		t.Errorf("info %+v, samples %q", info, samples)
	}
}

func TestSplitFoldersThatAreRefused(t *testing.T) {
	for want, files := range map[string][]string{
		"the images in train lie in class folders, those in test in none": {"train/cat/a.jpg", "test/a.jpg"},
		"found no images in val":                          {"train/cat/a.jpg", "val/cat/"},
		"found no images in val; remove":                  {"train/a.jpg", "val/"},
		"found no images for the classes dog":             {"train/cat/a.jpg", "train/dog/", "val/cat/a.jpg"},
		"images beside folders (val/b.jpg beside val/cat": {"train/cat/a.jpg", "val/cat/a.jpg", "val/b.jpg"},
		"holds no images":                                 {"train/", "val/"},
	} {
		if _, err := open(t, tree(t, files...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", files, err, want)
		}
	}
}

// An archive is split as its folders are, or as its name says.
func TestSplitsOfArchives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar")
	writeTar(t, path, "ds/test/cat/a.jpg", "ds/train/cat/b.jpg", "ds/train/dog/more/c.jpg")
	s := mustOpen(t, path, Options{})
	splits, samples := splitsAndNames(t, s)
	want := []string{"test ds/test/cat/a.jpg", "train ds/train/cat/b.jpg", "train ds/train/dog/more/c.jpg"}
	if got := strings.Join(s.Info().classes(), " "); got != "cat dog" || !slices.Equal(splits, []string{"train", "test"}) || !slices.Equal(samples, want) {
		t.Errorf("classes %s, splits %q, samples %q", got, splits, samples)
	}
	if _, _, err := describe(t, path, Options{}); err != nil {
		t.Error(err)
	}
	bad := filepath.Join(t.TempDir(), "x.tar")
	writeTar(t, bad, "train/cat/a.jpg", "test/a.jpg")
	if _, err := Open(t.Context(), bad, Options{}); err == nil || !strings.Contains(err.Error(), `images beside folders (in "test/"`) {
		t.Errorf("error %v", err)
	}

	dir := t.TempDir()
	for name, text := range map[string]string{"val.tar": packed(t, "1.jpg=x", "1.cls=1"), "train-0.tar": packed(t, "1.jpg=x", "1.cls=1", "2.jpg=x", "2.cls=1")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	splits, samples = splitsAndNames(t, mustOpen(t, filepath.Join(dir, "*.tar"), Options{}))
	if !slices.Equal(splits, []string{"train", "val"}) || len(samples) != 3 || !strings.HasPrefix(samples[0], "train ") || !strings.HasPrefix(samples[2], "val ") {
		t.Errorf("splits %q, samples %q", splits, samples)
	}
}

// Tables of one source are split as their names say.
func TestSplitsOfTables(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.csv": "a\n1\n2\n", "test.csv": "a\n3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	splits, samples := splitsAndNames(t, mustOpen(t, filepath.Join(dir, "*.csv"), Options{}))
	if !slices.Equal(splits, []string{"train", "test"}) || len(samples) != 3 || !strings.HasPrefix(samples[0], "test ") || !strings.HasPrefix(samples[1], "train ") {
		t.Errorf("splits %q, samples %q", splits, samples)
	}
}
