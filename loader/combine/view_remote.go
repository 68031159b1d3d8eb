package combine

import "context"

// Location asks the Source that has a field.
func (v *View) Location(field string, record int) string {
	p, name, first, ok := v.run(field, record, record+1)
	if !ok || p.can.Described == nil {
		return ""
	}
	return p.can.Described.Location(name, first)
}

// DescribeReads says how the Source that has a field reads it, and the part of all its records that is in memory.
func (v *View) DescribeReads(field string) (how, why string, resident float64) {
	p, name, err := v.field(field)
	if err != nil || p.can.Described == nil {
		return "", "", -1
	}
	return p.can.Described.DescribeReads(name)
}

// SourceName asks the Sources in order and returns the first source name of the record that one of them knows.
func (v *View) SourceName(ctx context.Context, record int) (string, error) {
	there, _ := v.rows.at(record, record+1)
	for _, p := range v.members {
		if name, err := p.can.SourceName(ctx, there); name != "" || err != nil {
			return name, err
		}
	}
	return "", nil
}

// Classes returns the class names of a field in its Source.
func (v *View) Classes(field string) []string {
	p, name, err := v.field(field)
	if err != nil || p.can.Classed == nil {
		return nil
	}
	return p.can.Classed.Classes(name)
}
