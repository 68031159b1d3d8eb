package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/remote"
)

// Files returns the files that path stands for. An existing path stands for itself, even if it looks like a glob.
// Otherwise braces are expanded, in their order, and a glob stands for the matching files sorted by name.
//
// Standard input, pipes and devices are refused: a source is read twice, to find its types and to read its samples.
func Files(path string) ([]string, error) {
	if path == "-" {
		return nil, fmt.Errorf("source -: standard input can be read only once, and this needs two passes; save it to " +
			"a file first")
	}
	_, absent := vfs.Lstat(path)
	if absent == nil {
		if info, err := vfs.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("source %s: is %s, which is read only once; write its output to a file first", path,
				vfs.Describe(info.Mode()))
		}
		return []string{path}, nil
	}
	list, err := braces(path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	if len(list) > 1 || list[0] != path {
		return expandEach(list)
	}
	if !strings.ContainsAny(path, "*?[") {
		return nil, notThere(path, absent, "no such file or folder"+suggest.Path(path))
	}
	files, err := vfs.Glob(path)
	if !IsHidden(filepath.Base(path)) {
		files = Visible(files)
	}
	if err != nil || len(files) == 0 {
		return nil, notThere(path, absent, "no file matches")
	}
	return files, nil
}

// notThere returns the error for a path that does not exist. If the check failed for another reason (a store that
// does not answer, a folder without permission), the error says that reason, so that users do not look for a typing
// error.
func notThere(path string, err error, text string) error {
	var at *fs.PathError
	if errors.As(err, &at) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("source %s: %w", path, at.Err)
	}
	var store *remote.Error
	if errors.As(err, &store) && store.Detail != "" {
		text += ": " + store.Detail
	}
	return fmt.Errorf("source %s: %s", path, text)
}

// Escape returns a glob that matches exactly path.
func Escape(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// Visible removes the files with hidden names. It reuses the slice.
func Visible(files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return IsHidden(filepath.Base(f)) })
}

// FilesIn returns the files that path stands for: the file itself, the files that a glob matches, or the files in a
// folder that match pattern.
func FilesIn(root *vfs.Root, path, pattern string) ([]string, error) {
	return filesIn(root, path, pattern, true, func(folder string) []string { return Visible(root.Glob(folder, pattern)) })
}

// filesIn is FilesIn with a function that lists the files of a folder. If list finds none and partitions is set,
// the files in the folder's partitions are returned. names describes the files that were looked for in the error.
func filesIn(root *vfs.Root, path, names string, partitions bool, list func(folder string) []string) ([]string, error) {
	files, err := Files(path)
	if err != nil || !IsDir(root, files[0]) {
		return files, err
	}
	folder := files[0]
	if files = list(folder); len(files) == 0 && partitions {
		files = PartitionFiles(root, folder)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("source %s: the folder holds no %s", path, names)
	}
	return files, nil
}

// BaseName returns the last element of the absolute form of path, so that "." has a name, too.
func BaseName(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Base(path)
}

// maxBraces limits the number of files that braces can stand for: {0..999999999999} would fill the memory.
const maxBraces = 1 << 20

// braces expands the braces of a path by the rules of shells and of WebDataset: {0000..0127} counts, with as many
// digits as the first number, and {a,b} is a choice. A path without braces stands for itself.
func braces(path string) ([]string, error) {
	begin := strings.IndexByte(path, '{')
	end := strings.IndexByte(path[max(begin, 0):], '}') + max(begin, 0)
	if begin < 0 || end < begin {
		return []string{path}, nil
	}
	inner, err := braced(path[begin+1 : end])
	if err != nil || inner == nil {
		return []string{path}, err
	}
	rest, err := braces(path[end+1:])
	if err != nil {
		return nil, err
	}
	if len(rest) > maxBraces/len(inner) {
		return nil, fmt.Errorf("its braces stand for more than %d files", maxBraces)
	}
	var list []string
	for _, i := range inner {
		for _, r := range rest {
			list = append(list, path[:begin]+i+r)
		}
	}
	return list, nil
}

// braced returns the texts that the text between two braces stands for, nil if it is no list and no range.
func braced(text string) ([]string, error) {
	from, to, ok := strings.Cut(text, "..")
	if !ok {
		if !strings.Contains(text, ",") {
			return nil, nil
		}
		return strings.Split(text, ","), nil
	}
	a, err := strconv.ParseUint(from, 10, 62)
	b, err2 := strconv.ParseUint(to, 10, 62)
	switch {
	case err != nil || err2 != nil:
		return nil, nil
	case b < a:
		return nil, fmt.Errorf("{%s} counts down", text)
	case b-a >= maxBraces:
		return nil, fmt.Errorf("{%s} stands for more than %d files", text, maxBraces)
	}
	var list []string
	for n := a; n <= b; n++ {
		list = append(list, fmt.Sprintf("%0*d", len(from), n))
	}
	return list, nil
}

// expandEach returns the files of all paths, in the order of the paths. A missing path is an error, as a missing
// shard would leave out samples silently.
func expandEach(paths []string) (files []string, err error) {
	for _, p := range paths {
		some, err := Files(p)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}

// CloseFiles closes files that were only read, so errors of Close lose no data and are ignored.
func CloseFiles(files []io.Closer) {
	for _, f := range files {
		f.Close()
	}
}
