package source

import (
	"fmt"
	"strings"
)

// QuickScan is the number of samples that can be looked at without a noticeable wait. Larger sources report
// progress, or are not scanned at all.
const QuickScan = 50_000

// Enumerate joins the first limit names with commas and counts the others.
func Enumerate(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// Clip shortens text to 40 bytes for a message.
func Clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

// Shorten returns the first limit names, and "..." if there are more.
func Shorten(names []string, limit int) []string {
	if len(names) <= limit {
		return names
	}
	return append(append([]string{}, names[:limit]...), "...")
}
