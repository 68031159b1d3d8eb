// Command gen writes testdata/raw and testdata/corrupt, the same bytes every time:
//
//	go run ./testdata/gen
//
// It runs in the root of the module. raw is an image folder of drawn shapes, one folder a
// class; corrupt holds files that no decoder must accept, or that are about what they are.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// file is one file to write, its path relative to testdata.
type file struct {
	path string
	data []byte
}

func main() {
	dir := flag.String("dir", "testdata", "folder to write raw/ and corrupt/ in")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate returns all files in a fixed order.
func generate() ([]file, error) {
	raw, err := rawFiles()
	if err != nil {
		return nil, err
	}
	bad, err := corruptFiles()
	return append(raw, bad...), err
}

// write replaces raw and corrupt in dir.
func write(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for _, sub := range []string{"raw", "corrupt"} {
		if err := os.RemoveAll(filepath.Join(dir, sub)); err != nil {
			return err
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
