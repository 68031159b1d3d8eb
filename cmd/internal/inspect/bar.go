package inspect

import "strings"

// bar draws value as a share of largest, in steps of an eighth of a character; something
// that is not nothing is never invisible.
func bar(value, largest int64, width int) string {
	if value <= 0 || largest <= 0 {
		return ""
	}
	eighths := max(1, int(float64(value)/float64(largest)*float64(8*width)+0.5))
	full := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return full
}
