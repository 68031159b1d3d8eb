package show

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/units"
)

// recordRange is consecutive records [first, end), and the text that asked for them: "7", "5:8",
// ":8" or "5:". An end of -1 means the end of the dataset.
type recordRange struct {
	text       string
	first, end int
}

// parseRange parses a number or a slice as Python writes it in brackets. Negative numbers are
// refused: a command line would take them for flags.
func parseRange(text string) (recordRange, error) {
	s := recordRange{text: text, end: -1}
	low, high, isRange := strings.Cut(text, ":")
	var err error
	if low != "" || !isRange {
		s.first, err = strconv.Atoi(low)
	}
	switch {
	case err != nil || s.first < 0:
	case !isRange:
		s.end = s.first + 1
		return s, nil
	case high == "":
		return s, nil
	default:
		if s.end, err = strconv.Atoi(high); err == nil && s.end >= s.first {
			return s, nil
		}
	}
	return s, fmt.Errorf("RECORDS %q: must be a number such as 7, or a range such as :8, 5: or 5:8 (5, 6, 7)", text)
}

// within returns the range in a dataset of n records. A range that reaches beyond the dataset is an
// error and is not cut, as a slice in Python would be: the user expects records that do not exist.
func (s recordRange) within(n int) (first, end int, err error) {
	end = s.end
	if end < 0 {
		end = max(n, s.first)
	}
	if end > n {
		return 0, 0, fmt.Errorf("RECORDS %s: out of range: it has %s, 0 to %d", s.text, units.Counted(int64(n), "record"),
			n-1)
	}
	return s.first, end, nil
}
