package source

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// splitWords are the names of splits, as the Hugging Face hub knows them, in the order in
// which their records are stored.
var splitWords = [][]string{
	{"train", "training"}, {"validation", "valid", "val", "dev"}, {"test", "testing", "eval", "evaluation"},
}

// splitRank returns the place of a split's name among all, -1 if it is none.
func splitRank(name string) int {
	return slices.IndexFunc(splitWords, func(words []string) bool { return slices.Contains(words, strings.ToLower(name)) })
}

// IsSplit reports whether a name is one of a split.
func IsSplit(name string) bool { return splitRank(name) >= 0 }

// TrainingName reports whether a split of that name is the one for training.
func TrainingName(name string) bool { return splitRank(name) == 0 }

// CompareSplits compares names of splits: names for training come first, then names for validation, then names for
// tests, and names of one purpose in alphabetical order.
func CompareSplits(a, b string) int {
	if d := splitRank(a) - splitRank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// FileSplits are the splits that files are by their names.
type FileSplits struct {
	Names []string          // sorted by bySplit; nil if names have none
	Of    map[string]string // by path
}

// SplitsOfFiles returns the splits of files if the name of each has one word that is a
// split's, or is in a folder of such a name, and there are at least two of them.
func SplitsOfFiles(files []string) FileSplits {
	s := FileSplits{Of: make(map[string]string)}
	for _, f := range files {
		name := splitInName(filepath.Base(f))
		if name == "" {
			name = splitInName(filepath.Base(filepath.Dir(f)))
		}
		if name == "" {
			return FileSplits{}
		}
		s.Of[f] = name
		if !slices.Contains(s.Names, name) {
			s.Names = append(s.Names, name)
		}
	}
	if len(s.Names) < 2 {
		return FileSplits{}
	}
	slices.SortFunc(s.Names, CompareSplits)
	return s
}

// splitInName returns the word of a name that is a split's, "" where there is none or more
// than one.
func splitInName(name string) (found string) {
	for _, word := range strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if !IsSplit(word) {
			continue
		}
		if found != "" && found != word {
			return ""
		}
		found = word
	}
	return found
}
