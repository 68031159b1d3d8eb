package cli

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// TerminalWidth returns the columns of the terminal that w is, 0 if it is none: what is read by a
// program, or kept in a file, has no width.
func TerminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// Wrap breaks lines of text that are longer than width between words. Continuations are
// indented like their line, and by hang more. With a width of 0 or less the text stays as it is.
func Wrap(text string, width, hang int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.TrimSuffix(line, "\n"), len(line) > 0 && strings.HasSuffix(line, "\n")
		b.WriteString(wrapLine(line, width, hang))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func wrapLine(line string, width, hang int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var b strings.Builder
	used := 0
	for word := range strings.FieldsSeq(line) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			b.WriteString(indent)
			used = len(indent)
		case used+1+n > width:
			b.WriteString("\n" + indent + strings.Repeat(" ", hang))
			used = len(indent) + hang
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// reflow joins the lines of paragraphs and breaks them anew where a line is longer than width. A
// line that is indented, or that ends long before the others do, ends where it did.
func reflow(text string, width int) string {
	longest := 0
	for line := range strings.Lines(text) {
		longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	if longest <= width {
		return text
	}
	var out []string
	open := false // the last line of out goes on
	for line := range strings.SplitSeq(text, "\n") {
		plain := line != "" && line[0] != ' '
		if plain && open {
			out[len(out)-1] += " " + line
		} else {
			out = append(out, line)
		}
		open = plain && utf8.RuneCountInString(line) > longest-18
	}
	return Wrap(strings.Join(out, "\n"), width, 0)
}
