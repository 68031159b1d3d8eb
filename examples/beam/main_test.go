package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"
)

// program is the command preprocess, built for the tests.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "beam")
	if err != nil {
		log.Fatal(err)
	}
	program = filepath.Join(dir, "preprocess")
	build := exec.Command("go", "build", "-C", "../..", "-tags", "nocloud", "-o", program, "./cmd/preprocess")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		log.Fatal("building preprocess: ", err)
	}
	code := ptest.MainRetWithDefault(m, "prism")
	os.RemoveAll(dir)
	os.Exit(code)
}

// pictures makes a folder of images, one of which is none.
func pictures(t *testing.T, n int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "photos")
	for i := range n {
		m := image.NewGray(image.Rect(0, 0, 30+i%5, 30))
		for p := range m.Pix {
			m.Pix[p] = uint8(p * (i + 3))
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		if i == n/2 {
			b.Truncate(40)
		}
		path := filepath.Join(root, []string{"cat", "dog"}[i*2/n], fmt.Sprintf("%03d.png", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// files returns the contents of all files below a folder by their paths.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, root := make(map[string]string), os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		all[path] = string(data)
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %d files, error %v", dir, len(all), err)
	}
	return all
}

// A pipeline on Prism makes the bytes of one process, also when it runs a second time.
func TestPipelineHasTheBytesOfOneProcess(t *testing.T) {
	source, out := pictures(t, 40), t.TempDir()
	one, many := filepath.Join(out, "one"), filepath.Join(out, "many")
	flags := []string{"--resize", "20", "--crop", "16", "--on-error", "skip", "--shuffle", "3", "--split", "train=0.8,val=0.2"}
	if err := runPreprocess(t.Context(), program, os.Stderr, append([]string{source, one}, flags...)...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := run(t.Context(), program, 5, append([]string{source, many}, flags...)); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(files(t, one), files(t, many)) {
			t.Error("the dataset of the pipeline has other bytes")
		}
		if err := os.RemoveAll(many); err != nil {
			t.Fatal(err)
		}
	}
}

// The error of a part is the error of the pipeline.
func TestPipelineFails(t *testing.T) {
	err := run(t.Context(), program, 3, []string{pictures(t, 10), filepath.Join(t.TempDir(), "ds"), "--resize", "20", "--crop", "16"})
	if err == nil || !strings.Contains(err.Error(), "use --on-error skip to leave out such samples") {
		t.Errorf("error %v", err)
	}
}
