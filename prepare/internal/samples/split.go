package samples

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Share is a split and its share of the records.
type Share struct {
	Name  string
	Share float64 // in (0, 1]; the shares of all splits add up to 1
}

// ParseSplit reads NAME=SHARE,... such as train=0.9,val=0.1. Shares that do not add up to 1
// are an error.
func ParseSplit(text string) (list []Share, err error) {
	if text == "" {
		return nil, nil
	}
	sum := 0.0
	for _, part := range strings.Split(text, ",") {
		name, share, ok := strings.Cut(strings.TrimSpace(part), "=")
		x, err := strconv.ParseFloat(share, 64)
		if !ok || err != nil || !(x > 0) || x > 1 || name == "" {
			return nil, fmt.Errorf("%q is not NAME=SHARE with a share above 0, such as train=0.9,val=0.1", part)
		}
		for _, s := range list {
			if s.Name == name {
				return nil, fmt.Errorf("there are two splits %q", name)
			}
		}
		list = append(list, Share{name, x})
		sum += x
	}
	if math.Abs(sum-1) > 1e-9 {
		return nil, fmt.Errorf("the shares add up to %v, not to 1", sum)
	}
	return list, nil
}

// SplitText is the inverse of ParseSplit.
func SplitText(list []Share) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, s.Name+"="+strconv.FormatFloat(s.Share, 'g', -1, 64))
	}
	return strings.Join(parts, ",")
}
