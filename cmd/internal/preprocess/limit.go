package preprocess

import (
	"fmt"
	"strconv"
	"strings"
)

// Limit is how many bad samples are too many: a number, or a share of all samples. The zero
// value is no limit.
type Limit struct {
	Set     bool
	Count   int64
	Percent float64 // if not 0, of all samples, instead of Count
}

// ParseLimit reads 100 or 0.5%.
func ParseLimit(text string) (l Limit, err error) {
	if text == "" {
		return l, nil
	}
	l.Set = true
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		l.Percent, err = strconv.ParseFloat(percent, 64)
		if err != nil || !(l.Percent > 0) || l.Percent > 100 {
			return Limit{}, fmt.Errorf("must be a number of samples, or a share such as 0.5%%")
		}
		return l, nil
	}
	if l.Count, err = strconv.ParseInt(text, 10, 64); err != nil || l.Count < 0 {
		return Limit{}, fmt.Errorf("must be a number of samples, or a share such as 0.5%%")
	}
	return l, nil
}

// String returns what ParseLimit read.
func (l Limit) String() string {
	switch {
	case !l.Set:
		return ""
	case l.Percent != 0:
		return strconv.FormatFloat(l.Percent, 'g', -1, 64) + "%"
	}
	return strconv.FormatInt(l.Count, 10)
}

// of returns the limit as a number, for a total that is known.
func (l Limit) of(total int64) Limit {
	if l.Percent != 0 && total >= 0 {
		return Limit{Set: true, Count: int64(l.Percent / 100 * float64(total))}
	}
	return l
}

// exceeded reports whether so many bad ones of so many samples are too many. Where the
// number of samples is not known, a share counts from the first 1000 on.
func (l Limit) exceeded(bad, seen, total int64) bool {
	switch {
	case !l.Set:
		return false
	case l.Percent == 0:
		return bad > l.Count
	case total < 0:
		total = max(seen, 1000)
	}
	return float64(bad) > l.Percent/100*float64(total)
}
