package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseAxes parses sizes of axes, such as time=24,lat=128. An axis is its name or its number, which
// the caller looks up.
func ParseAxes(text string) (map[string]int, error) {
	sizes := make(map[string]int)
	for part := range strings.SplitSeq(text, ",") {
		axis, size, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(size)
		if !ok || axis == "" || err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not an axis with a size, such as time=24", part)
		}
		if _, twice := sizes[axis]; twice {
			return nil, fmt.Errorf("axis %q has two sizes", axis)
		}
		sizes[axis] = n
	}
	return sizes, nil
}
