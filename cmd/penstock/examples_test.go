package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect"
	"github.com/penstock/penstock/cmd/internal/penstock"
	"github.com/penstock/penstock/cmd/internal/preprocess"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// elsewhere says what an example needs that a test does not have.
var elsewhere = map[string]string{
	"s3://":         "a bucket",
	"srun":          "Slurm",
	"/shared/":      "a cluster's storage",
	"/mnt/":         "a disk of that name",
	"/run/user/":    "a session of a user, and ends when it is interrupted",
	"display":       "a window",
	"&& train":      "a program of the user's",
	"python":        "the Python package; python/tests runs it",
	"loadbench":     "seconds for each row; the scripts of cmd/loadbench run it",
	"penstock demo": "most of a minute; make demo runs it",
}

// TestMain lets this binary be the programs that [programs] makes: linking them takes longer than the tests do.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"penstock":   main,
		"preprocess": func() { cli.Main(preprocess.Command()) },
		"inspect":    func() { cli.Main(inspect.Command()) },
	})
}

// programs returns a folder with the named programs of TestMain.
func programs(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range names {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	return dir
}

// TestExamplesOfHelp runs the examples of every help text in a shell, in a folder with the files that they name.
func TestExamplesOfHelp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the examples are for a shell of Unix")
	}
	t.Setenv("PATH", programs(t, "penstock")+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // which examples fill and remove
	inputs := exampleInputs(t)
	ran := 0
	for _, line := range examplesOf(penstock.Command()) {
		t.Run(line, func(t *testing.T) {
			for part, need := range elsewhere {
				if strings.Contains(line, part) {
					t.Skipf("needs %s", need)
				}
			}
			if _, err := exec.LookPath("jq"); err != nil && strings.Contains(line, "jq") {
				t.Skip("needs jq")
			}
			if _, err := os.Stat(filepath.Join(inputs, "other.h5")); err != nil && regexp.MustCompile(`other.h5|old.h5`).MatchString(line) {
				t.Skip("needs h5py, which writes those files")
			}
			dir := t.TempDir()
			shell(t, dir, fmt.Sprintf("cp -r %s/. . && rm -rf %s", inputs, destOf(line)))
			if strings.Contains(line, "preprocess merge") {
				shell(t, dir, "penstock preprocess photos out/flat --resize 24x24 --rank 0 --world-size 2 && penstock preprocess photos out/flat --resize 24x24 --rank 1 --world-size 2")
			}
			shell(t, dir, line)
			ran++
		})
	}
	if ran < 30 {
		t.Errorf("only %d examples ran", ran)
	}
}

// examplesOf lists the examples of a command and of those below, each once and without the comment after it.
func examplesOf(cmd *cobra.Command) []string {
	lines := make(map[string]bool)
	for line := range strings.Lines(cmd.Example) {
		if line, _, _ = strings.Cut(strings.TrimSpace(line), "    "); line != "" {
			lines[line] = true
		}
	}
	for _, c := range cmd.Commands() {
		for _, line := range examplesOf(c) {
			lines[line] = true
		}
	}
	return slices.Sorted(maps.Keys(lines))
}

// destOf returns the dataset that an example of preprocess makes, "" if it is none.
func destOf(line string) string {
	words := strings.Fields(line)
	i := slices.Index(words, "preprocess")
	if i < 0 || len(words) < i+3 || words[i+1] == "normalize" || words[i+1] == "cache" || strings.Contains(line, "--pipeline") {
		return ""
	}
	return words[i+2]
}

// rawSamples is how many samples testdata/raw has.
const rawSamples = 300

// exampleInputs makes the files that the examples name.
func exampleInputs(t *testing.T) string {
	raw, err := filepath.Abs("../../testdata/raw")
	require.NoError(t, err)
	dir := t.TempDir()
	var pixels, numbers []string
	for i := range 784 {
		pixels, numbers = append(pixels, fmt.Sprint("pixel", i)), append(numbers, fmt.Sprint(i%256))
	}
	windows := func(first, end int) string {
		return fmt.Sprintf(`{"penstock": "view", "version": 1, "window": {"dataset": "out/flat"}, "by": {"sizes": {"0": 2}, "within": [[%d, %d]]}}`+"\n", first, end)
	}
	files := map[string]string{
		"train.view.json": windows(0, 60), "val.view.json": windows(60, 80), "test.view.json": windows(80, 100),
		"photos.csv":     "file,boxes\nfiles/000.jpg,\"[[1,2,3,4],[5,6,7,8]]\"\nfiles/001.jpg,[]\n",
		"half.view.json": `{"penstock": "view", "version": 1, "select": {"dataset": "out/flat"}, "ranges": [[0, 100]]}` + "\n",
		"weights.csv":    "labels,weight\ncircle,0.5\nsquare,1.5\n",
		"train.json":     `[{"op": "RandomResizedCrop", "size": [16, 16]}, {"op": "RandomHorizontalFlip"}]` + "\n",
		"state.json":     `{"v": 1, "sampler": "shuffle", "batch": 8, "epoch": 0, "step": 5}` + "\n",
		"mnist.csv":      "label," + strings.Join(pixels, ",") + "\n7," + strings.Join(numbers, ",") + "\n",
	}
	for name, n := range map[string]int{"emb.npy": rawSamples, "emb-1.npy": rawSamples / 4} {
		header := layout.Header(tensor.Spec{DType: tensor.Float32, Shape: tensor.Shape{4}}, int64(n))
		files[name] = string(header) + strings.Repeat("\x00\x00\x80\x3f", 4*n)
	}
	files["scores.csv"] = "source_name,score\ncircle/000.jpg,0.5\n"
	files["labels.csv"] = "source_name,labels\ncircle/000.jpg,square\n"
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	shell(t, dir, fmt.Sprintf(`ln -s %s photos && ln -s photos scans && mkdir files && cp photos/circle/00[01].jpg files
mkdir shards && tar -cf shards/0.tar -C photos circle && tar -cf shards/1.tar -C photos square
penstock preprocess photos out/flat --resize 24x24 --split train=0.8,val=0.2
penstock preprocess photos out/photos.h5 --resize 24x24 --split train=0.8,val=0.2
penstock preprocess weights.csv weights
penstock preprocess photos out/f32 --resize 24x24 --dtype float32
cp -r out/f32 monday && cp -r out/f32 tuesday
cp -r out/flat yesterday && cp -r out/flat today && cp -r out/flat a && cp -r out/flat b
cp out/photos.h5 photos.h5`, raw))
	if h5test.Find() != "" {
		other := h5test.File(t, `    f["train/x"] = np.zeros((9, 8, 8, 3), "u1")
    f["train/y"] = np.arange(9)`)
		old := h5test.File(t, `    f.create_dataset("x", data=np.zeros((9, 8), "f4"), chunks=(3, 8), compression="gzip")`)
		shell(t, dir, fmt.Sprintf("cp %s other.h5 && cp %s old.h5", other, old))
	}
	return dir
}

// shell runs a script, which must succeed, and returns what it prints.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, bytes.TrimSpace(out))
	}
	return string(out)
}
