package combine

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Location asks the source of a record.
func (c *Concat) Location(field string, record int) string {
	i, number := c.Locate(record)
	if d := c.members[i].can.Described; d != nil {
		return d.Location(field, number)
	}
	return ""
}

// Intact asks all sources.
func (c *Concat) Intact() error {
	for i, m := range c.members {
		if m.can.Checked == nil {
			continue
		}
		if err := m.can.Checked.Intact(); err != nil {
			return c.renumber(i, err)
		}
	}
	return nil
}

// SourceName asks the source of a record.
func (c *Concat) SourceName(ctx context.Context, record int) (string, error) {
	i, number := c.Locate(record)
	return c.members[i].can.SourceName(ctx, number)
}

// DescribeReads describes how the sources read a field; InMemory is the share of all records.
func (c *Concat) DescribeReads(field string) (how, why string, resident float64) {
	var hows, whys []string
	resident = 0
	for i, m := range c.members {
		if m.can.Described == nil {
			return "", "", -1
		}
		h, w, in := m.can.Described.DescribeReads(field)
		if !slices.Contains(hows, h) {
			hows = append(hows, h)
		}
		whys = append(whys, fmt.Sprintf("source %d: %s", i, w))
		if in < 0 || resident < 0 {
			resident = -1
		} else if c.Len() > 0 {
			resident += in * float64(m.Len()) / float64(c.Len())
		}
	}
	return strings.Join(hows, " and "), strings.Join(whys, "; "), resident
}

// Fetch announces to each source its records that will be needed.
func (c *Concat) Fetch(ctx context.Context, field string, indices []int) error {
	return c.bySource(indices, func(_ *groups, i int, local, _ []int) error {
		if r := c.members[i].can.Remote; r != nil {
			return r.Fetch(ctx, field, local)
		}
		return nil
	})
}
