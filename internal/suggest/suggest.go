// Package suggest helps people who mistyped a name: it finds the known name that they may have meant.
//
// [Hint] and [OneOf] return the end of an error message, such as: did you mean "images"? A name is close if few letters
// differ, by the edit distance with transpositions. Where nothing is close, they list what there is, up to a length
// that fits a message.
package suggest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// most is how many names a hint lists.
const most = 20

// Hint words the known name that is most like name, or lists the known names if no name is
// alike, for the end of a message that says that name is unknown. Upper and lower case are
// alike.
func Hint(name string, known []string) string {
	switch best := Closest(name, known); {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(known) == 0:
		return "; there are none"
	case len(known) > most:
		return fmt.Sprintf("; known are %s and %d more", list(known[:most]), len(known)-most)
	}
	return "; known are " + list(known)
}

// OneOf says that a value is not one of the known values, and names the known value
// that was probably meant: at most a third of its letters differ.
func OneOf(value string, known []string) string {
	text := "must be one of " + list(known)
	if best := Closest(value, known); best != "" && Distance(strings.ToLower(value), strings.ToLower(best)) <= max(
		1, len(value)/3) {
		text += fmt.Sprintf("; did you mean %q?", best)
	}
	return text
}

// Closest returns the known name that is most like name: at most half of its letters differ,
// or one name begins with the other. It returns "" if no name is that close.
func Closest(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		a, b := strings.ToLower(name), strings.ToLower(k)
		d := Distance(a, b)
		if shared := min(len(a), len(b)); shared >= 4 && a[:shared] == b[:shared] {
			d = min(d, len(name)/2)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// Path names the file or folder next to path whose name is most like it, for the end of a message
// that path does not exist; "" if no name is close.
func Path(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path)) // without them, there is nothing to suggest
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	best := Closest(filepath.Base(path), names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", filepath.Join(filepath.Dir(path), best))
}

// Distance counts the bytes to insert, delete or replace and the neighbors to swap to make b
// of a (optimal string alignment).
func Distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// list returns the known names, separated by commas. A name with characters that a terminal would not show is quoted.
func list(known []string) string {
	names := make([]string, len(known))
	for i, k := range known {
		quoted := strconv.QuoteToGraphic(k)
		if names[i] = k; len(quoted) != len(k)+2 {
			names[i] = quoted
		}
	}
	return strings.Join(names, ", ")
}
