package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/disintegration/imaging"

	"github.com/penstock/penstock/bench/internal/measure"
)

// set is a list of photos.
type set struct {
	name, text string
	files      [][]byte
}

func (s set) String() string {
	bytes := 0
	for _, f := range s.files {
		bytes += len(f)
	}
	return fmt.Sprintf("%s: %d JPEG files of %d KB on average, %s", s.name, len(s.files), bytes/1000/max(1, len(s.files)),
		s.text)
}

const (
	longer  = 2000 // pixels of the longer side of enlarged photos
	quality = 90
)

// prepare puts the photos at path, unchanged and enlarged, into folders of dir, where
// children find them, in the order of their names.
func prepare(dir, path string, every int) ([]set, error) {
	path, text, err := locate(path)
	if err != nil {
		return nil, err
	}
	small := set{name: "photos", text: text}
	if small.files, err = collect(path); err != nil {
		return nil, err
	}
	large := set{name: "enlarged", text: fmt.Sprintf("every %d. of those, longer side %d pixels by imaging's "+
		"CatmullRom, image/jpeg at quality %d (4:2:0)", every, longer, quality)}
	for i := 0; i < len(small.files); i += every {
		f, err := enlarge(small.files[i])
		if err != nil {
			return nil, err
		}
		large.files = append(large.files, f)
	}
	for _, s := range []set{small, large} {
		if err := s.store(filepath.Join(dir, s.name)); err != nil {
			return nil, err
		}
	}
	return []set{small, large}, nil
}

// progressive makes progressive files of the photos, without loss, by jpegtran. It makes none
// if jpegtran is missing.
func progressive(dir string, from set) ([]set, error) {
	program, err := exec.LookPath("jpegtran")
	if err != nil {
		return nil, nil
	}
	out := set{name: "progressive", text: "the photos by jpegtran -progressive"}
	for _, data := range from.files {
		run := exec.Command(program, "-progressive", "-copy", "none")
		run.Stdin = bytes.NewReader(data)
		file, err := run.Output()
		if err != nil {
			return nil, fmt.Errorf("jpegtran: %w", err)
		}
		out.files = append(out.files, file)
	}
	return []set{out}, out.store(filepath.Join(dir, out.name))
}

// locate finds photos where no path is given.
func locate(path string) (found, text string, err error) {
	if path != "" {
		return path, "from " + filepath.Base(path), nil
	}
	if path = measure.Find("shared/data/photos.tar"); path != "" {
		return path, "from photos.tar", nil
	}
	if path = measure.Find("testdata/raw"); path != "" {
		return path, "from testdata/raw (there is no ../shared/data/photos.tar: these are small drawings, no photos)", nil
	}
	return "", "", errors.New("no photos: name an archive or a folder by -data")
}

// collect reads the JPEG files of an archive or a folder.
func collect(path string) (files [][]byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		files, err = readFolder(path)
	} else {
		files, err = readArchive(path)
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file in it is a JPEG", path)
	}
	return files, err
}

func readFolder(path string) (files [][]byte, err error) {
	err = filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isJPEG(name) {
			return err
		}
		data, err := os.ReadFile(name)
		files = append(files, data)
		return err
	})
	return files, err
}

func readArchive(path string) ([][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var files [][]byte
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if !isJPEG(h.Name) {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, h.Name, err)
		}
		files = append(files, data)
	}
}

func isJPEG(name string) bool {
	return slices.Contains([]string{".jpg", ".jpeg"}, strings.ToLower(filepath.Ext(name)))
}

// enlarge returns the photo with its longer side made longer pixels, gray ones with color.
func enlarge(data []byte) ([]byte, error) {
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	w, h := longer, 0
	if size := m.Bounds().Size(); size.Y > size.X {
		w, h = 0, longer
	}
	var large image.Image = imaging.Resize(m, w, h, imaging.CatmullRom)
	var out bytes.Buffer
	err = jpeg.Encode(&out, large, &jpeg.Options{Quality: quality})
	return out.Bytes(), err
}

// store writes the files to a folder: a class folder in it, as preprocess likes them.
func (s set) store(dir string) error {
	if err := os.MkdirAll(filepath.Dir(photoPath(dir, 0)), 0o755); err != nil {
		return err
	}
	for i, f := range s.files {
		if err := os.WriteFile(photoPath(dir, i), f, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// photoPath is where store writes file i of a set.
func photoPath(dir string, i int) string {
	return filepath.Join(dir, "photo", fmt.Sprintf("%04d.jpg", i))
}
