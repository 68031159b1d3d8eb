package archive

import (
	"fmt"

	"github.com/penstock/penstock/prepare/source"
)

// group is the consecutive members with one key: the name up to the first dot of its last element.
type group struct {
	file    string // path of the archive
	number  int    // position of the archive in archive.files
	part    int    // number of the archive within the file: cat a.tar b.tar makes a file of two archives
	key     string
	members []member
	bytes   int64    // size of the members' data
	ignored []string // names of files before the group that are not samples
}

// add adds a member. All members of a sample together may have as many bytes as one value, source.MaxValue: a
// hostile archive could otherwise give one key to any number of members, whose data is in memory until the group
// ends. Later members get an error in place of their data.
func (g *group) add(m member) {
	if g.bytes += m.size(); g.bytes > source.MaxValue {
		m.data, m.packed, m.placed = nil, nil, nil
		m.err = fmt.Errorf("comes after %d bytes of other members of its sample", source.MaxValue)
	}
	g.members = append(g.members, m)
}

// get returns the member with that extension, nil if the group has no such member.
func (g group) get(ext string) *member {
	for i := range g.members {
		if g.members[i].ext == ext {
			return &g.members[i]
		}
	}
	return nil
}
