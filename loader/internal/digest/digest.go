// Package digest names parameters in a few characters, for the IDs that a State compares.
package digest

import (
	"fmt"
	"hash/fnv"
)

// Of returns 16 hexadecimal digits: a digest of the values as fmt prints them.
func Of(values ...any) string {
	h := fnv.New64a()
	for _, v := range values {
		fmt.Fprintf(h, "%v;", v)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
