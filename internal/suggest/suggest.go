// Package suggest helps people who mistyped a name: it finds the known one that they may
// have meant.
package suggest

import (
	"fmt"
	"strconv"
	"strings"
)

// most is how many names a hint lists.
const most = 20

// Hint words the known name that is most like name, or the known names if none is, for the
// end of a message that says that name is unknown. Upper and lower case are alike.
func Hint(name string, known []string) string {
	best, least := "", len(name)/2+1
	for _, k := range known {
		if d := Distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(known) == 0:
		return "; there are none"
	case len(known) > most:
		return fmt.Sprintf("; known are %s and %d more", list(known[:most]), len(known)-most)
	}
	return "; known are " + list(known)
}

// Distance counts the bytes to insert, delete or replace to make b of a (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// list names those that were meant, each in a line with the others.
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
