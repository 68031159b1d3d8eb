package prepare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/tensor"
)

// The error is the first in the order of the source, even if a later one happens earlier.
func TestFirstErrorInOrder(t *testing.T) {
	source := rawtest.Folder(t, 30)
	rawtest.Put(t, source, "cat/m.jpg", rawtest.Picture(t, ".jpg", 400, 400, 1)[:4000]) // takes longer to find out
	rawtest.Put(t, source, "cat/n.jpg", nil)
	rawtest.Put(t, source, "dog/a.jpg", []byte("words"))
	for _, workers := range []int{1, 2, 8} {
		c := config(t, source)
		c.Workers = workers
		text := runError(t, c)
		if !strings.HasPrefix(text, "cat/m.jpg: jpeg: truncated") || !strings.HasSuffix(text, "; use --on-error skip to leave out such samples") {
			t.Errorf("%d workers: %s", workers, text)
		}
	}
}

func TestSkip(t *testing.T) {
	source := rawtest.Folder(t, 10)
	rawtest.Put(t, source, "cat/0.jpg", nil) // the very first
	rawtest.Put(t, source, "cat/m.jpg", rawtest.Picture(t, ".jpg", 60, 60, 1)[:600])
	rawtest.Put(t, source, "dog/zz.jpg", []byte("words"))
	rawtest.Put(t, source, "README.md", []byte("words"))
	c := config(t, source)
	c.Skip = true
	s := mustRun(t, c)
	m := rawtest.Manifest(t, c.Dest)
	if s.Records != 10 || s.Source.Samples != 13 || len(s.Skipped) != 3 || s.Source.Ignored != 1 {
		t.Errorf("summary %+v", s)
	}
	want := []struct{ sample, reason string }{
		{"cat/0.jpg", "not an image: the file is empty"}, {"cat/m.jpg", "jpeg: truncated at byte 600"}, {"dog/zz.jpg", "looks like text"},
	}
	for i, w := range want {
		if i >= len(m.Skipped) || m.Skipped[i].Sample != w.sample || !strings.Contains(m.Skipped[i].Reason, w.reason) {
			t.Fatalf("manifest lists %+v, want %+v", m.Skipped, want)
		}
	}
	if s.SkippedKinds[imagefile.ErrNotImage.Error()] != 2 || s.SkippedKinds[imagefile.ErrCorrupt.Error()] != 1 {
		t.Errorf("kinds %v", s.SkippedKinds)
	}
}

func TestNoReadableImage(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	rawtest.Put(t, source, "cat/a.jpg", []byte("words"))
	rawtest.Put(t, source, "cat/b.jpg", nil)
	c := config(t, source)
	c.Skip = true
	if text := runError(t, c); !strings.HasPrefix(text, "no usable sample among 2; the first: cat/a.jpg: not an image") {
		t.Error(text)
	}
}

// Sizes that differ are not the fault of a sample, so --on-error skip does not hide them.
func TestSeveralSizes(t *testing.T) {
	for _, workers := range []int{1, 8} {
		c := config(t, rawtest.Folder(t, 20))
		c.Images.Resize, c.Images.Crop, c.Workers, c.Skip = nil, nil, workers, true
		want := "images of several sizes do not make one array: cat/a.png is 40x30 pixels, cat/b.jpg is 30x44; bring all to one size"
		if text := runError(t, c); !strings.HasPrefix(text, want) {
			t.Errorf("%d workers: %s", workers, text)
		}
	}
	c := config(t, rawtest.Folder(t, 4))
	c.Images.Crop = nil
	if text := runError(t, c); !strings.Contains(text, "(32x24 and 24x35 after --resize)") {
		t.Error(text)
	}
}

// Sizes of equal area have records of equal length, and still are not the same.
func TestTransposedSizes(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	rawtest.Put(t, source, "a.png", rawtest.Picture(t, ".png", 40, 30, 1))
	rawtest.Put(t, source, "b.png", rawtest.Picture(t, ".png", 30, 40, 1))
	c := config(t, source)
	c.Images.Resize, c.Images.Crop = nil, nil
	if text := runError(t, c); !strings.Contains(text, "a.png is 40x30 pixels, b.png is 30x40") {
		t.Error(text)
	}
}

// An image that the transforms cannot work with is a bad sample like others.
func TestImpossibleShape(t *testing.T) {
	source := filepath.Join(t.TempDir(), "photos")
	rawtest.Put(t, source, "a.png", rawtest.Picture(t, ".png", 24, 24, 1))
	rawtest.Put(t, source, "b.png", rawtest.Picture(t, ".png", 400, 1, 1)) // a line: 24x0 pixels
	rawtest.Put(t, source, "c.png", rawtest.Picture(t, ".png", 48, 48, 1))
	c := config(t, source)
	c.Images.Fit, c.Images.Crop = "longer", nil
	if text := runError(t, c); !strings.HasPrefix(text, "b.png: transform Resize: ") {
		t.Error(text)
	}
	c.Skip = true
	if s := mustRun(t, c); s.Records != 2 || len(s.Skipped) != 1 || s.Skipped[0].Sample != "b.png" {
		t.Errorf("summary %+v", s)
	}
}

func TestMaxPixels(t *testing.T) {
	c := config(t, rawtest.Folder(t, 4))
	c.Images.MaxPixels = 1250
	if text := runError(t, c); !strings.HasPrefix(text, "cat/b.jpg: jpeg: image size 30x44") || !strings.Contains(text, "--max-pixels") {
		t.Error(text)
	}
}

func TestInterrupt(t *testing.T) {
	stop := errors.New("interrupted")
	dests := []string{"ds"}
	dests = append(dests, "ds.h5", "ds.zarr")
	for _, dest := range dests {
		for _, dtype := range []tensor.DType{tensor.Uint8, tensor.Float32} {
			c := config(t, rawtest.Folder(t, 50))
			c.Dest, c.Images.DType = filepath.Join(filepath.Dir(c.Dest), dest), dtype
			c.Images.Normalize, _ = field.ParseNormalize("dataset")
			ctx, cancel := context.WithCancelCause(context.Background())
			_, err := Run(ctx, c, &rawtest.Silent{F: func(done int64) {
				if done == 20 {
					cancel(stop)
				}
			}})
			if !errors.Is(err, stop) || !strings.HasPrefix(err.Error(), "interrupted after 2") || !strings.Contains(err.Error(), "nothing was written to "+c.Dest) {
				t.Errorf("%s, %v: error %v", dest, dtype, err)
			}
			rawtest.CheckNothing(t, c.Dest)
		}
	}
}

func TestPlaces(t *testing.T) {
	source := rawtest.Folder(t, 2)
	parent := filepath.Dir(source)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(source, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	dataset := config(t, source)
	made := dataset.Dest
	mustRun(t, dataset)
	cases := []struct{ source, dest, want string }{
		{source, source, "are both"},
		{source, filepath.Join(source, "out"), "is inside the source"},
		{source, filepath.Join(source, "x", "y", "out"), "is inside the source"},
		{source, filepath.Join(link, "out"), "is inside the source"},
		{link, filepath.Join(source, "out"), "is inside the source"},
		{source, parent, "is inside the destination"},
		{link, source, "are both"},
		{source + "s", filepath.Join(parent, "out"), "no such file or folder"},
		{filepath.Join(source, "cat", "a.png"), filepath.Join(parent, "out"), "is a file"},
		{source, filepath.Join(source, "..", "photos2"), ""},
		{source, source + "-out", ""},
		{source, filepath.Join(made, "x", "out"), "is inside the dataset"},
	}
	for _, k := range cases {
		c := config(t, k.source)
		c.Dest, c.Overwrite = k.dest, true
		err := checkPlaces(setup{Config: c})
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s to %s: error %v, want %q", k.source, k.dest, err, k.want)
		}
	}
	if entries, err := os.ReadDir(source); err != nil || len(entries) != 2 {
		t.Errorf("the source holds %v, %v", entries, err)
	}
}

func TestUnwritable(t *testing.T) {
	c := config(t, rawtest.Folder(t, 2))
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o666))
	c.Dest = filepath.Join(blocked, "ds")
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.HasPrefix(err.Error(), "cannot write "+c.Dest) {
		t.Errorf("error %v", err)
	}
	if sys := "/proc"; runtime.GOOS == "linux" { // where no user can create files, not even root
		c.Dest = filepath.Join(sys, "ds")
		if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "nothing can be made in the folder "+sys+": ") {
			t.Errorf("error %v", err)
		}
	}
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("permissions do not hold for this user, so a folder without them is not tried")
	}
	locked := filepath.Join(t.TempDir(), "locked")
	require.NoError(t, os.Mkdir(locked, 0o555))
	c.Dest = filepath.Join(locked, "ds")
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "nothing can be made in the folder "+locked+": permission denied") {
		t.Errorf("error %v", err)
	}
	c.Dest = filepath.Join(t.TempDir(), "ds")
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.Chmod(c.Dest, 0o555))
	t.Cleanup(func() { _ = os.Chmod(c.Dest, 0o755) })
	before, err := os.ReadDir(filepath.Dir(c.Dest))
	require.NoError(t, err)
	c.Overwrite = true
	if _, err := Run(context.Background(), c, &rawtest.Silent{}); err == nil || !strings.Contains(err.Error(), "the folder "+c.Dest+" cannot be changed: permission denied") {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadDir(filepath.Dir(c.Dest)); err != nil || len(after) != len(before) {
		t.Errorf("next to a dataset that could not be replaced: %v, before %v: %v", after, before, err)
	}
}
