package source

import (
	"fmt"
	"strconv"
	"strings"
)

// maxBraces bounds what the braces of a path can stand for.
const maxBraces = 1 << 20

// braces returns what a path stands for by the rules of shells, which WebDataset has too:
// {0000..0127} counts, with as many digits, and {a,b} chooses. A path without them stands for
// itself.
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

// braced returns what the text between braces stands for, nil if nothing.
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

// expandEach returns the files that all paths are, in their order. Each has to be there.
func expandEach(paths []string) (files []string, err error) {
	for _, p := range paths {
		some, err := expand(p)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	return files, nil
}
