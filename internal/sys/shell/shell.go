// Package shell writes command lines that people paste into a POSIX shell, with names in them that come from files, and
// passes secret arguments to child processes.
//
// Every message with a command is made here, so that a file named "a b; rm" is quoted, and the command works as typed.
// Secrets, such as keys in URLs, go to a child in its environment: other users can read arguments, and shells keep
// them.
package shell

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote makes one word for a POSIX shell. ok is false where s has characters that cannot be printed, so that
// nobody sees what the word is: then there is no command to show.
func Quote(s string) (word string, ok bool) {
	if !printable(s) {
		return "", false
	}
	if strings.HasPrefix(s, "-") {
		s = "./" + s // no flag
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("./_-+,:@%=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s, true
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", true
}

// Command returns a command line: prefix, unquoted, and then each of the words, quoted; "" if a word cannot be
// printed.
func Command(prefix string, words ...string) string {
	line := prefix
	for _, w := range words {
		word, ok := Quote(w)
		if !ok {
			return ""
		}
		line += " " + word
	}
	return line
}

// Line returns text for one line of a terminal: characters that cannot be printed, line breaks too, are spelled as in
// a string of Go.
func Line(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		character := s[:n]
		if !printable(character) {
			quoted := strconv.Quote(character)
			character = quoted[1 : len(quoted)-1]
		}
		b.WriteString(character)
		s = s[n:]
	}
	return b.String()
}

// Lines returns text for a terminal: Line of each of its lines.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Line(line)
	}
	return strings.Join(lines, "\n")
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
