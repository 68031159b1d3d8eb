package combine

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/loader"
)

// sameClasses refuses a source in which a number means another class than in the sources before it.
// Sources that are no loader.ClassedSource are not compared.
func (c *Concat) sameClasses(next loader.ClassedSource) error {
	i := slices.IndexFunc(c.members, func(m member) bool { return m.can.Classed != nil })
	if next == nil || i < 0 {
		return nil
	}
	for _, spec := range next.Specs() {
		first, classes := c.Classes(spec.Name), next.Classes(spec.Name)
		if !slices.Equal(first, classes) {
			return fmt.Errorf("field %q has the classes %s; source %d has %s, so that a number is not the same class; give "+
				"both datasets the same classes",
				spec.Name, several(classes), i, several(first))
		}
	}
	return nil
}

// several lists class names, and only the first of many.
func several(classes []string) string {
	const most = 5
	switch n := len(classes); {
	case n == 0:
		return "[] (none)"
	case n > most:
		return fmt.Sprintf("%q and %d more", classes[:most], n-most)
	}
	return fmt.Sprintf("%q", classes)
}
