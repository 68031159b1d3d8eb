package zarr

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Siblings returns the paths of the groups in one group that have all arrays of the hierarchy, under the same names and
// with the same types and numbers of axes: at least two, or none. Each is a record, or a sequence of records, and their
// arrays are not fields of one record.
func (g *Group) Siblings() (list []string) {
	if len(g.Arrays) == 0 {
		return nil
	}
	above := ""
	for {
		members := make(map[string]string) // of what is below, by its path
		list = nil
		for _, a := range g.Arrays {
			name, in, isGroup := strings.Cut(strings.TrimPrefix(a.Path, above), "/")
			if !isGroup {
				return nil // an array
			}
			at := path.Join(above, name)
			if _, seen := members[at]; !seen {
				list = append(list, at)
			}
			rows := a.Rows()
			members[at] += fmt.Sprintf("%q %v %d;", in, rows.number.dtype, len(a.Shape))
		}
		if len(list) == 1 {
			above = list[0] + "/"
			continue
		}
		if slices.ContainsFunc(list, func(at string) bool { return members[at] != members[list[0]] }) {
			return nil
		}
		return list
	}
}
