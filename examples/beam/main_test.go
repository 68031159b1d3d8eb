package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"

	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/internal/foldertest"
	"github.com/penstock/penstock/internal/preprocess"
)

func TestMain(m *testing.M) {
	if os.Getenv(asPreprocess) != "" {
		cli.Main(preprocess.Command())
		return
	}
	ptest.Main(m)
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

// A pipeline on Prism makes the bytes of one process, also when it runs a second time.
func TestPipelineHasTheBytesOfOneProcess(t *testing.T) {
	source, out := pictures(t, 40), t.TempDir()
	one, many := filepath.Join(out, "one"), filepath.Join(out, "many")
	flags := []string{"--resize", "20", "--crop", "16", "--on-error", "skip", "--shuffle", "3", "--split", "train=0.8,val=0.2"}
	if err := runPreprocess(t.Context(), os.Stderr, append([]string{source, one}, flags...)...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := run(t.Context(), 5, append([]string{source, many}, flags...)); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(foldertest.Files(t, one), foldertest.Files(t, many)) {
			t.Error("the dataset of the pipeline has other bytes")
		}
		if err := os.RemoveAll(many); err != nil {
			t.Fatal(err)
		}
	}
}

// What is wrong with a part is the error of the pipeline.
func TestPipelineFails(t *testing.T) {
	err := run(t.Context(), 3, []string{pictures(t, 10), filepath.Join(t.TempDir(), "ds"), "--resize", "20", "--crop", "16"})
	if err == nil || !strings.Contains(err.Error(), "--on-error skip leaves such samples out") {
		t.Errorf("error %v", err)
	}
}
