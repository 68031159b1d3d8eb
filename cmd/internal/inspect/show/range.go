package show

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/internal/units"
)

// recordRange is a choice of consecutive records, as it was given: "7", "5:8", ":8", "5:".
type recordRange struct {
	text       string
	first, end int // end -1: to the last record
}

// parseRange reads what Python would read in brackets, negative numbers aside.
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

// within returns the records of the span in a dataset of n, or says that there are none.
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
