package s3test

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote/mirror"
)

// command builds a command of the module and returns its path.
func command(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-C", "../../..", "-o", out, "./cmd/"+name)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

// must runs a command and returns all that it prints, in which no secret may be.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, text)
	}
	noSecret(t, "output", string(text))
	return string(text)
}

func noSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{AccessKey, SecretKey} {
		if strings.Contains(text, secret) {
			t.Errorf("%s has a secret in it", where)
		}
	}
}

// pictures writes a class folder of images, one of which is none.
func pictures(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		m := image.NewRGBA(image.Rect(0, 0, 40, 30))
		for p := range m.Pix {
			m.Pix[p] = uint8(p*i + p>>3)
		}
		m.Set(i%40, i%30, color.White)
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		if i == n/2 {
			b.Truncate(50)
		}
		path := filepath.Join(dir, []string{"cat", "dog"}[i*2/n], fmt.Sprintf("%04d.png", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// archive writes the files of a folder into a tar file.
func archive(t *testing.T, dir, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want string) {
	t.Helper()
	a, b := foldertest.Files(t, got), foldertest.Files(t, want)
	if !maps.Equal(a, b) {
		t.Errorf("%s has %v, and %s has %v, or other bytes in them", got, slices.Sorted(maps.Keys(a)), want, slices.Sorted(maps.Keys(b)))
	}
	for name, text := range a {
		noSecret(t, name, text)
	}
}

// From a bucket to a bucket the dataset is the one that is made locally: in one run, in three
// and a merge, of a folder and of an archive.
func TestPreprocess(t *testing.T) {
	s := Start(t)
	preprocess := command(t, "preprocess")
	local := t.TempDir()
	pictures(t, filepath.Join(local, "photos"), 90)
	if err := os.CopyFS(filepath.Join(s.Root, "photos"), os.DirFS(filepath.Join(local, "photos"))); err != nil {
		t.Fatal(err)
	}
	archive(t, filepath.Join(local, "photos"), filepath.Join(local, "photos.tar"))
	archive(t, filepath.Join(local, "photos"), filepath.Join(s.Root, "photos.tar"))
	flags := []string{"--resize", "24", "--crop", "16", "--on-error", "skip", "--split", "train=0.8,val=0.2", "--shard-size", "16KiB"}
	run := func(args ...string) {
		t.Helper()
		text, err := exec.Command(preprocess, append(args, flags...)...).CombinedOutput()
		if code := exitCode(err); code != 3 {
			t.Fatalf("preprocess %q ended with %d, and not 3 as one image is none:\n%s", args, code, text)
		}
		noSecret(t, "output", string(text))
	}
	for _, source := range []string{"photos", "photos.tar"} {
		name := strings.ReplaceAll(source, ".", "-") // as ds.tar is not the name of a dataset
		want := filepath.Join(local, "out-"+name)
		run(filepath.Join(local, source), want)
		run(s.URL(s.Address, source), s.URL(s.Address, "one/"+name))
		same(t, filepath.Join(s.Root, "one", name), want)
		run(filepath.Join(local, source), want+".zarr")
		run(s.URL(s.Address, source), s.URL(s.Address, "one/"+name+".zarr"))
		same(t, filepath.Join(s.Root, "one", name+".zarr"), want+".zarr")

		dest := s.URL(s.Address, "ranks/"+name)
		for _, rank := range []string{"2", "0", "1"} {
			args := append([]string{s.URL(s.Address, source), dest, "--rank", rank, "--world-size", "3", "--spool", t.TempDir()}, flags...)
			text, err := exec.Command(preprocess, args...).CombinedOutput()
			if code := exitCode(err); code != 0 && code != 3 {
				t.Fatalf("rank %s ended with %d:\n%s", rank, code, text)
			}
			noSecret(t, "output", string(text))
		}
		text, err := exec.Command(preprocess, "merge", dest, "--remove-parts").CombinedOutput()
		if code := exitCode(err); code != 3 {
			t.Fatalf("merge ended with %d:\n%s", code, text)
		}
		same(t, filepath.Join(s.Root, "ranks", name), want)
		if _, err := os.Stat(filepath.Join(s.Root, "ranks", name+".parts")); err == nil {
			if left := foldertest.Files(t, filepath.Join(s.Root, "ranks", name+".parts")); len(left) > 0 {
				t.Errorf("parts are left: %v", slices.Sorted(maps.Keys(left)))
			}
		}
	}
	inspect := command(t, "inspect")
	must(t, inspect, "verify", filepath.Join(s.Root, "ranks", "photos"))
	must(t, inspect, "verify", s.URL(s.Address, "one/photos.zarr"), "--cache-dir", t.TempDir())
	a, err := mmapds.Open(filepath.Join(local, "out-photos"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	d := openURL(t, s.URL(s.Address, "one/photos.zarr"), mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	opts := loader.Options{BatchSize: 16, Sampler: sampler.Shuffle{}, Seed: 1}
	if want, _ := digest(t, a, opts, 0); a.ID() != d.ID() {
		t.Errorf("id %s, want %s", d.ID(), a.ID())
	} else if got, n := digest(t, d, opts, 0); got != want || n == 0 {
		t.Error("other bytes are loaded of Zarr than of the flat dataset")
	}
}

var schedules = flag.Int("schedules", 4, "how many schedules of ranks TestSchedules runs")

// Ranks that run as engines run them make the bytes of a single run: TestSchedules of preprocess, with this store.
func TestSchedules(t *testing.T) {
	s := Start(t)
	must(t, "go", "test", "-C", "../../..", "./prepare", "-run", "^TestSchedules$", "-timeout", "2h", "-schedules", strconv.Itoa(*schedules),
		"-store-url", s.URL(s.Address, "schedules"), "-store-folder", filepath.Join(s.Root, "schedules"))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	return -1
}
