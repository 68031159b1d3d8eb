package vfs

import (
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Glob returns the paths that match a pattern, by name. filepath.Glob and fs.Glob list the folder of a name without a
// wildcard, too, and sort all names of a folder that they list, which takes seconds for a million files.
func Glob(pattern string) ([]string, error) {
	fsys, name := find(pattern)
	switch {
	case isPlain(pattern) && (fsys != nil || runtime.GOOS != "windows"):
		return expand(pattern), nil
	case fsys == nil:
		return filepath.Glob(pattern)
	}
	names, err := fs.Glob(fsys, name)
	for i := range names {
		names[i] = rooted(pattern, name, names[i])
	}
	return names, err
}

// expand returns the paths that match a pattern.
func expand(pattern string) (found []string) {
	dir, file := filepath.Split(pattern)
	dirs := []string{filepath.Clean(dir)}
	if isPattern(dir) {
		dirs = expand(filepath.Clean(dir))
	}
	for _, d := range dirs {
		found = append(found, matching(d, file, exists, EachEntry)...)
	}
	return found
}

func exists(path string) bool {
	_, err := Lstat(path)
	return err == nil
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

// matching returns the paths in a folder whose names match a part of a pattern, by name. Folders that cannot be listed
// have no matches.
func matching(dir, pattern string, exists func(path string) bool,
	each func(dir string, f func([]fs.DirEntry) error) error) (found []string) {
	if !isPattern(pattern) {
		if path := filepath.Join(dir, pattern); exists(path) {
			found = append(found, path)
		}
		return found
	}
	matches := matcher(pattern)
	err := each(dir, func(list []fs.DirEntry) error {
		for _, e := range list {
			if name := e.Name(); matches(name) {
				found = append(found, filepath.Join(dir, name))
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	slices.Sort(found)
	return found
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
