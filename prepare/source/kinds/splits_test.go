package kinds

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// An archive is split as its folders are, or as its name says.
func TestSplitsOfArchives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar")
	writeTar(t, path, "ds/test/cat/a.jpg", "ds/train/cat/b.jpg", "ds/train/dog/more/c.jpg")
	s := mustOpen(t, path, source.Options{})
	splits, samples := splitsAndNames(t, s)
	want := []string{"test ds/test/cat/a.jpg", "train ds/train/cat/b.jpg", "train ds/train/dog/more/c.jpg"}
	if got := strings.Join(classesOf(s.Info()), " "); got != "cat dog" || !slices.Equal(splits, []string{"train", "test"}) || !slices.Equal(samples, want) {
		t.Errorf("classes %s, splits %q, samples %q", got, splits, samples)
	}
	if _, _, err := describe(t, path, source.Options{}); err != nil {
		t.Error(err)
	}
	bad := filepath.Join(t.TempDir(), "x.tar")
	writeTar(t, bad, "train/cat/a.jpg", "test/a.jpg")
	if _, err := Open(t.Context(), bad, source.Options{}); err == nil || !strings.Contains(err.Error(), `images next to folders (in "test/"`) {
		t.Errorf("error %v", err)
	}

	dir := t.TempDir()
	for name, text := range map[string]string{"val.tar": packed(t, "1.jpg=x", "1.cls=1"), "train-0.tar": packed(t, "1.jpg=x", "1.cls=1", "2.jpg=x", "2.cls=1")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	splits, samples = splitsAndNames(t, mustOpen(t, filepath.Join(dir, "*.tar"), source.Options{}))
	if !slices.Equal(splits, []string{"train", "val"}) || len(samples) != 3 || !strings.HasPrefix(samples[0], "train ") || !strings.HasPrefix(samples[2], "val ") {
		t.Errorf("splits %q, samples %q", splits, samples)
	}
}

// Tables of one source are split as their names say.
func TestSplitsOfTables(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.csv": "a\n1\n2\n", "test.csv": "a\n3\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	splits, samples := splitsAndNames(t, mustOpen(t, filepath.Join(dir, "*.csv"), source.Options{}))
	if !slices.Equal(splits, []string{"train", "test"}) || len(samples) != 3 || !strings.HasPrefix(samples[0], "test ") || !strings.HasPrefix(samples[1], "train ") {
		t.Errorf("splits %q, samples %q", splits, samples)
	}
}

// splitsAndNames returns what a source says of splits, and "split name" of its samples.
func splitsAndNames(t *testing.T, s source.Source) (splits, samples []string) {
	t.Helper()
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		samples = append(samples, sample.Split+" "+sample.Name)
	}
	return s.Info().Splits, samples
}
