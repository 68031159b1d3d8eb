package preprocess

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/internal/preprocess/field"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
)

// picture returns an image that depends on seed, in the format that name ends in.
func picture(t testing.TB, name string, w, h, seed int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x*7 + seed*31), uint8(y*5 + seed*17), uint8((x ^ y) * (seed%3 + 1)), 255})
		}
	}
	var b bytes.Buffer
	var err error
	if strings.HasSuffix(name, ".png") {
		err = png.Encode(&b, m)
	} else {
		err = jpeg.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// put writes a file inside root.
func put(t testing.TB, root, name string, data []byte) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// folder makes a source with n images in two classes, sizes 40x30 and 30x44.
func folder(t testing.TB, n int) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "photos")
	for i := range n {
		w, h, ext := 40, 30, ".png"
		if i%2 == 1 {
			w, h, ext = 30, 44, ".jpg"
		}
		name := []string{"cat", "dog"}[i*2/n] + "/" + string(rune('a'+i%26)) + strings.Repeat("z", i/26) + ext
		put(t, root, name, picture(t, name, w, h, i))
	}
	return root
}

// config is a Config that works: source to a new place, 24 short, 16x16 crop.
func config(t testing.TB, source string) Config {
	t.Helper()
	c := DefaultConfig()
	c.Source, c.Dest = source, filepath.Join(t.TempDir(), "ds")
	c.Resize, c.Crop = []int{24}, []int{16}
	c.Normalize, _ = field.ParseNormalize("none")
	return c
}

// silent is a Progress that calls f, if it is set, with the number done so far.
type silent struct {
	done int64
	f    func(done int64)
}

func (*silent) Begin(string, int64, string) {}
func (*silent) End()                        {}
func (*silent) Note(string)                 {}
func (*silent) Warn(string)                 {}
func (s *silent) Add(n int64) {
	s.done += n
	if s.f != nil {
		s.f(s.done)
	}
}

func mustRun(t testing.TB, c Config) *Summary {
	t.Helper()
	s, err := Run(context.Background(), c, &silent{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runError runs c, which must fail with nothing left, and returns the error's text.
func runError(t testing.TB, c Config) string {
	t.Helper()
	s, err := Run(context.Background(), c, &silent{})
	if err == nil {
		t.Fatalf("made %+v, want an error", s)
	}
	checkNothing(t, c)
	return err.Error()
}

// checkNothing makes sure that nothing is at the destination nor beside it.
func checkNothing(t testing.TB, c Config) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(c.Dest))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", e.Name())
	}
}

// payload returns the bytes of a field of a flat dataset of one shard.
func payload(t testing.TB, dest, field string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dest, field+"-00000.npy"))
	if err != nil {
		t.Fatal(err)
	}
	return data[layout.HeaderBytes:]
}

func manifest(t testing.TB, dest string) *store.Manifest {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dest, store.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.DecodeManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
