package cli

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// TerminalWidth returns the number of columns of the terminal w, or 0 if w is no terminal: output
// to a program or a file is not wrapped, so that grep and diff see whole lines.
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

// Wrap breaks lines that are longer than width between words. A continuation has the indent of its
// line and hang more spaces. If width is 0 or less, the text does not change.
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

// wrapLine is Wrap for one line. A word that is longer than the width stays whole.
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

// Fit breaks the lines of a screen that are longer than width between words. A line continues below
// its last column that leaves room; columns begin after two spaces. Quoted text stays whole, an
// assignment stays with its value, and a comment continues as a comment, so that code in the output
// can be copied. If width is 0, the text does not change.
func Fit(text string, width int) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = fitLine(line, width)
	}
	return strings.Join(lines, "\n")
}

// fitRoom is the least width of a column in which lines continue; narrower columns would break
// after each word.
const fitRoom = 16

// fitLine is Fit for one line. It cuts pieces off the front of rest, and continues with an indent.
func fitLine(line string, width int) string {
	rest := []rune(line)
	hang := lastColumn(rest, width-fitRoom)
	from, indent, comment := hang, "", false
	var b strings.Builder
	for len(indent)+len(rest) > width {
		at, inComment := cut(rest, from, width-len(indent))
		if gap := lastColumn(rest, width-len(indent)+1); from > 0 && gap > hang && gap < len(rest) &&
			len(rest)-gap <= width-hang {
			at, inComment = gap-1, false // the last column as a whole
		}
		if at < 0 {
			break
		}
		b.WriteString(indent + strings.TrimRight(string(rest[:at]), " ") + "\n")
		rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
		from, indent, comment = 0, strings.Repeat(" ", hang), comment || inComment
		if comment {
			indent += "# "
		}
	}
	return b.String() + indent + string(rest)
}

// lastColumn returns the start of the last column that begins before limit. Without columns it
// returns the line's indent plus two.
func lastColumn(line []rune, limit int) int {
	indent := 0
	for indent < len(line) && line[indent] == ' ' {
		indent++
	}
	for i := min(limit, len(line)-1); i > max(indent, 1); i-- {
		if line[i] != ' ' && line[i-1] == ' ' && line[i-2] == ' ' {
			return i
		}
	}
	return indent + 2
}

// cut returns the index of the last space after from that leaves at most room characters before it;
// otherwise the first space after from, or -1 if the line has no such space. It also reports
// whether that space is in a comment. Spaces in quotes, and after another space, "=" or "#", are no
// places to cut, so that code stays valid. If the number of quotes in the line is odd, all of them
// are ignored.
func cut(line []rune, from, room int) (at int, comment bool) {
	at = -1
	quoted, hash := false, false
	pairs := strings.Count(string(line), `"`)%2 == 0
	for i, r := range line {
		switch {
		case r == '"' && pairs:
			quoted = !quoted
		case r == '#' && !quoted && i+1 < len(line) && line[i+1] == ' ' && (i == 0 || line[i-1] == ' '):
			hash = true
		case r == ' ' && !quoted && i > from && line[i-1] != ' ' && line[i-1] != '=' && line[i-1] != '#':
			if i > room && at >= 0 {
				return at, comment
			}
			at, comment = i, hash
		}
	}
	return at, comment
}

// reflow joins the lines of each paragraph and wraps the result, if a line is longer than width.
// The help texts in the sources are wrapped by hand at about 100 columns. A line that is indented,
// or that ends at least 18 characters before the longest line does, ends a paragraph or a row of a
// list and is not joined with the next line.
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
