package archive

import (
	"fmt"

	"github.com/penstock/penstock/prepare/source"
)

// group is consecutive members of one key: the name up to the first dot of its last element.
type group struct {
	file    string // the archive
	number  int    // of the archive
	part    int    // of the file: archives may follow each other in it
	key     string
	members []member
	bytes   int64    // of the members' data
	ignored []string // files before it that are not samples
}

// add adds a member. The data of all members together takes no more memory than one member may, source.MaxValue.
func (g *group) add(m member) {
	if g.bytes += m.size(); g.bytes > source.MaxValue {
		m.data, m.packed, m.placed = nil, nil, nil
		m.err = fmt.Errorf("comes after %d bytes of other members of its sample", source.MaxValue)
	}
	g.members = append(g.members, m)
}

// get returns the member with that extension, nil if there is none.
func (g group) get(ext string) *member {
	for i := range g.members {
		if g.members[i].ext == ext {
			return &g.members[i]
		}
	}
	return nil
}
