package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Glob returns the paths that match a pattern, by name.
func Glob(pattern string) ([]string, error) {
	fsys, name := find(pattern)
	if fsys == nil {
		return globHere(pattern)
	}
	names, err := fs.Glob(fsys, name)
	root := strings.TrimSuffix(filepath.ToSlash(filepath.Clean(pattern)), name)
	for i := range names {
		names[i] = root + names[i]
	}
	return names, err
}

// globHere is filepath.Glob, which lists the folder of a name without a wildcard, too, and sorts all names of one that
// it lists. Detection asks that of folders with a million files.
func globHere(pattern string) ([]string, error) {
	if !isPattern(pattern) || !isPlain(pattern) || runtime.GOOS == "windows" {
		return filepath.Glob(pattern)
	}
	dir, file := filepath.Split(pattern)
	dirs := []string{filepath.Clean(dir)}
	if isPattern(dir) {
		var err error
		if dirs, err = globHere(filepath.Clean(dir)); err != nil {
			return nil, err
		}
	}
	var found []string
	for _, d := range dirs {
		found = append(found, matching(d, file)...)
	}
	return found, nil
}

// isPlain reports whether each part of a pattern is well formed, and a name.
func isPlain(pattern string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
		if _, err := filepath.Match(part, ""); err != nil || part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func isPattern(path string) bool { return strings.ContainsAny(path, `*?[\`) }

// matching returns the paths in a folder whose names match a pattern, by name. Folders that cannot be listed have none.
func matching(dir, pattern string) (found []string) {
	if !isPattern(pattern) {
		path := filepath.Join(dir, pattern)
		if _, err := os.Lstat(path); err == nil {
			found = append(found, path)
		}
		return found
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	matches := matcher(pattern)
	for {
		names, err := d.Readdirnames(readDirStep)
		for _, name := range names {
			if matches(name) {
				found = append(found, filepath.Join(dir, name))
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				found = nil
			}
			slices.Sort(found)
			return found
		}
	}
}

// matcher returns a function that says whether names match a pattern, which is well formed.
func matcher(pattern string) func(name string) bool {
	if end, ok := strings.CutPrefix(pattern, "*"); ok && !isPattern(end) {
		return func(name string) bool { return strings.HasSuffix(name, end) }
	}
	return func(name string) bool {
		is, _ := filepath.Match(pattern, name)
		return is
	}
}
