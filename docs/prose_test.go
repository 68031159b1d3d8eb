package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// vocabulary is the list of phrases that vale checks too, with what to write instead.
const vocabulary = "style/styles/Penstock/Words.yml"

var banned = func() map[string]string {
	var rule struct{ Swap map[string]string }
	data, err := os.ReadFile(vocabulary)
	if err == nil {
		err = yaml.Unmarshal(data, &rule)
	}
	if err != nil {
		panic(err)
	}
	return rule.Swap
}()

var bannedWords = regexp.MustCompile(`(?i)\b(` + strings.Join(slices.Sorted(maps.Keys(banned)), "|") + `)\b`)

// instead returns what to write for a banned phrase.
func instead(phrase string) string {
	for pattern, word := range banned {
		if regexp.MustCompile(`(?i)^(` + pattern + `)$`).MatchString(phrase) {
			return word
		}
	}
	return "another word"
}

// check reports every banned phrase of a text that begins at a line of a file.
func check(t *testing.T, file string, line int, text string) {
	for i, l := range strings.Split(text, "\n") {
		for _, phrase := range bannedWords.FindAllString(l, -1) {
			t.Errorf("%s:%d: %q: write %s", file, line+i, phrase, instead(phrase))
		}
	}
}

// The pages, the comments and strings of the Go code and the Python package have no banned words.
func TestWords(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "out" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go":
			files++
			return checkGo(t, path)
		case ".md", ".py":
			files++
			data, err := os.ReadFile(path)
			check(t, path, 1, string(data))
			return err
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, error %v", files, err)
	}
}

// checkGo checks the comments and strings of a Go file.
func checkGo(t *testing.T, path string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			check(t, path, set.Position(c.Pos()).Line, c.Text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			check(t, path, set.Position(lit.Pos()).Line, lit.Value)
		}
		return true
	})
	return nil
}

// longest is how many words a sentence of README and docs has at most.
const longest = 35

var (
	comments  = regexp.MustCompile(`(?s)<!--.*?-->`)
	links     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	code      = regexp.MustCompile("`[^`]*`")
	marker    = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
	sentences = regexp.MustCompile(`[.!?]["')*]*(\s+|$)`)
)

// prose returns the sentences of a page: no code, tables or headings.
func prose(text string) (list []string) {
	var paragraph []string
	flush := func() {
		for _, s := range sentences.Split(strings.Join(paragraph, " "), -1) {
			if len(strings.Fields(s)) > 0 {
				list = append(list, strings.TrimSpace(s))
			}
		}
		paragraph = nil
	}
	fenced := false
	for line := range strings.Lines(comments.ReplaceAllString(text, "")) {
		line = strings.TrimRight(line, "\n")
		if fence.MatchString(line) {
			fenced = !fenced
			flush()
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			flush()
			continue
		}
		if strings.TrimSpace(line) == "" || marker.MatchString(line) {
			flush()
		}
		line = code.ReplaceAllString(links.ReplaceAllString(marker.ReplaceAllString(line, ""), "$1"), "code")
		paragraph = append(paragraph, line)
	}
	flush()
	return list
}

// No sentence is long. There is no rule on the median, which would reward fragments.
func TestSentences(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range prose(string(data)) {
			found++
			if n := len(strings.Fields(s)); n > longest {
				t.Errorf("%s: a sentence of %d words; at most %d: %s", page, n, longest, s)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d sentences were found", found)
	}
	data, err := os.ReadFile("../README.md")
	if n := strings.Count(string(data), "\n"); err != nil || n > 150 {
		t.Errorf("README.md has %d lines, error %v; at most 150", n, err)
	}
}
