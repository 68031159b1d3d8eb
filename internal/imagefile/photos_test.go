package imagefile

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/transforms"
)

// photos returns paths of real photographs: $PENSTOCK_DATA/photos.tar or that of ../shared/data next to the checkout.
func photos(t testing.TB, limit int) []string {
	t.Helper()
	dir := os.Getenv("PENSTOCK_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	f, err := os.Open(filepath.Join(dir, "photos.tar"))
	if err != nil {
		t.Skip("no photos to test with (set PENSTOCK_DATA):", err)
	}
	defer f.Close()
	var paths []string
	tmp := t.TempDir()
	for r := tar.NewReader(f); len(paths) < limit; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if !strings.HasSuffix(h.Name, ".JPEG") {
			continue
		}
		path := filepath.Join(tmp, filepath.Base(h.Name))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		paths = append(paths, path)
	}
	return paths
}

// somePhotos returns many photographs, or few in short tests.
func somePhotos(t testing.TB) []string {
	t.Helper()
	if testing.Short() {
		return photos(t, 10)
	}
	return photos(t, 1000)
}

// From a file to the crop that a network gets: the same bytes as Pillow with torchvision's
// geometry.
func TestPipelineAgainstPillow(t *testing.T) {
	paths := somePhotos(t)
	for _, filter := range []string{"bilinear", "bicubic", "lanczos"} {
		t.Run(filter, func(t *testing.T) {
			p, d := newPillow(t, "RGB", strings.ToUpper(filter)), New(Options{})
			run := evaluation(t, filter, p.passOrder()).Runner()
			got := pixels{w: 224, h: 224, c: 3, pix: make([]byte, 224*224*3)}
			for _, path := range paths {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				src, err := d.Open(data)
				require.NoError(t, err)
				if err := run.Do(got.pix, src); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				p.compare(path, got)
			}
			t.Logf("%s: compared %d photos", Backend(), len(paths))
		})
	}
}

func evaluation(t testing.TB, filter, passOrder string) *transforms.Pipeline {
	t.Helper()
	p, err := transforms.Compose(transforms.Resize{Size: []int{256}, Interpolation: filter, PassOrder: passOrder},
		transforms.CenterCrop{Size: []int{224}})
	require.NoError(t, err)
	return p
}

// Both back ends give libjpeg's pixels, bit for bit.
func TestPhotosAgainstPillow(t *testing.T) {
	againstPillow(t, somePhotos(t))
}
