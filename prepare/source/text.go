package source

import (
	"fmt"
	"strings"
)

// QuickScan is how many samples can be looked at in a moment.
const QuickScan = 50_000

// Enumerate joins up to limit names.
func Enumerate(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// Clip shortens text for a message.
func Clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

// Shorten keeps the first names and says how many are left.
func Shorten(names []string, limit int) []string {
	if len(names) <= limit {
		return names
	}
	return append(append([]string{}, names[:limit]...), "...")
}
