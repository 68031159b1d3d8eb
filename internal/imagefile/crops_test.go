package imagefile

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/transforms"
)

var crops = flag.Int("crops", 400, "crops that TestCropsAgainstTorchvision compares")

// TestCropsAgainstTorchvision takes random parts of images of every format, subsampling and
// quality, and of photos where there are some, resized and mirrored as RandomResizedCrop and
// RandomHorizontalFlip do: not one byte differs from torchvision's on Pillow.
func TestCropsAgainstTorchvision(t *testing.T) {
	t.Run("kinds", func(t *testing.T) {
		files, err := filepath.Glob("testdata/kinds/*")
		require.NoError(t, err)
		compareCrops(t, files, 6)
	})
	t.Run("photos", func(t *testing.T) { compareCrops(t, somePhotos(t), 1) })
}

// compareCrops takes crops of files of at least want formats in turn.
func compareCrops(t *testing.T, files []string, want int) {
	p, d := newPillow(t, "RGB", "crops"), New(Options{})
	rng := rand.New(rand.NewPCG(5, 6))
	compared, formats := 0, make(map[format.Format]int)
	for i := 0; compared < *crops/2 && i < 10**crops; i++ {
		path, err := filepath.Abs(files[i%len(files)])
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		c, err := ReadConfig(data)
		if err != nil || c.Bits > 8 { // Pillow clips gray ones
			continue
		}
		src, err := d.Open(data)
		if err != nil {
			continue
		}
		w, h, _ := src.Size()
		cw, ch := 1+rng.IntN(w), 1+rng.IntN(h)
		x, y, size, flip := rng.IntN(w-cw+1), rng.IntN(h-ch+1), []int{224, 96, 33}[rng.IntN(3)], rng.IntN(2)
		torch, ok := p.ask(fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d", path, x, y, cw, ch, size, flip))
		if !ok {
			continue
		}
		ts := []transforms.Transform{
			transforms.Crop{Top: y, Left: x, Height: ch, Width: cw},
			transforms.Resize{Size: []int{size, size}, PassOrder: p.passOrder()},
		}
		if flip == 1 {
			ts = append(ts, transforms.RandomHorizontalFlip{P: new(1.0)})
		}
		pipeline, err := transforms.Compose(ts...)
		require.NoError(t, err)
		got := make([]byte, 3*size*size)
		if err := pipeline.Runner().DoRand(got, src, transforms.Rand{}); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !bytes.Equal(got, torch.pix) {
			t.Errorf("%s: %dx%d at (%d, %d) of %dx%d to %d, flip %d: pixels differ", path, cw, ch, x, y, w, h, size, flip)
		}
		compared++
		formats[c.Format]++
	}
	if len(formats) < want || compared < *crops/2 {
		t.Errorf("compared only %d crops: %v", compared, formats)
	}
	t.Logf("compared %d crops of %d files with Pillow %d: %v", compared, len(files), p.major, formats)
}
