package source

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// splitWords are the names of splits that the Hugging Face hub recognizes. The position of a group is the order in
// which the records of its splits are stored.
var splitWords = [][]string{
	{"train", "training"}, {"validation", "valid", "val", "dev"}, {"test", "testing", "eval", "evaluation"},
}

// splitRank returns the position of a split name in splitWords, in any case of letters; -1 if it is no split name.
func splitRank(name string) int {
	return slices.IndexFunc(splitWords, func(words []string) bool { return slices.Contains(words, strings.ToLower(name)) })
}

// IsSplit reports whether a name is a split name.
func IsSplit(name string) bool { return splitRank(name) >= 0 }

// TrainingName reports whether a split name is the name of a training split.
func TrainingName(name string) bool { return splitRank(name) == 0 }

// CompareSplits orders split names: training, validation, test. Names of one purpose are in alphabetical order, and
// names without a purpose come before all others.
func CompareSplits(a, b string) int {
	if d := splitRank(a) - splitRank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// FileSplits assigns a split to each file by its name.
type FileSplits struct {
	Names []string          // sorted by CompareSplits; nil if the names give no splits
	Of    map[string]string // the split by path
}

// SplitsOfFiles returns the splits of files if every file name, or else the name of its folder, has exactly one
// split word, and there are at least two splits. Otherwise no file has a split: half of a dataset with splits would
// be a surprise.
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

// splitInName returns the word of a name that is a split name; "" if there is no such word, or words of different
// splits.
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
