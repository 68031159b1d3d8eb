package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
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
	names, err := globIn(fsys, name)
	for i := range names {
		names[i] = rooted(pattern, name, names[i])
	}
	return names, err
}

// globIn is fs.Glob, at the speed of globHere.
func globIn(fsys FS, pattern string) ([]string, error) {
	if !isPlain(pattern) {
		return fs.Glob(fsys, pattern)
	}
	return expand(pattern, func(dir, pattern string) []string { return matchingIn(fsys, dir, pattern) }), nil
}

// globHere is filepath.Glob, which lists the folder of a name without a wildcard, too, and sorts all names of one that
// it lists. Detection looks for names in folders with a million files, where that takes seconds.
func globHere(pattern string) ([]string, error) {
	if !isPattern(pattern) || !isPlain(pattern) || runtime.GOOS == "windows" {
		return filepath.Glob(pattern)
	}
	return expand(pattern, matching), nil
}

// expand returns the paths that match a pattern. Those in a folder are the caller's to find.
func expand(pattern string, matching func(dir, pattern string) []string) (found []string) {
	dir, file := filepath.Split(pattern)
	dirs := []string{filepath.Clean(dir)}
	if isPattern(dir) {
		dirs = expand(filepath.Clean(dir), matching)
	}
	for _, d := range dirs {
		found = append(found, matching(d, file)...)
	}
	return found
}

// matchingIn returns the names in a folder of a file system that match a pattern, by name.
func matchingIn(fsys FS, dir, pattern string) (found []string) {
	if !isPattern(pattern) {
		name := path.Join(dir, pattern)
		if _, err := fsys.Stat(name); err == nil {
			found = append(found, name)
		}
		return found
	}
	list, err := fsys.ReadDir(dir)
	if err != nil {
		return nil
	}
	matches := matcher(pattern)
	for _, e := range list {
		if name := e.Name(); matches(name) {
			found = append(found, path.Join(dir, name))
		}
	}
	return found
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
	d, err := OpenFolder(dir)
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
