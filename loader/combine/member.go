package combine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// member is one of the Sources of a combined one.
type member struct {
	loader.Source
	can loader.Capabilities
}

// newMember returns src with its capabilities; it fails if src has only some methods of an interface.
func newMember(src loader.Source) (member, error) {
	can, err := loader.CapabilitiesOf(src)
	return member{src, can}, err
}

// retain takes a lease on every member, or on none.
func retain(members []member) error {
	for i, m := range members {
		if err := m.Retain(); err != nil {
			release(members[:i])
			return err
		}
	}
	return nil
}

// release gives back a lease of every member.
func release(members []member) {
	for _, m := range members {
		m.Release()
	}
}

// faultOf asks the member whose memory contains addr why a read there failed.
func faultOf(members []member, addr uintptr) error {
	for _, m := range members {
		if m.can.Fault != nil {
			if err := m.can.Fault.Fault(addr); err != nil {
				return err
			}
		}
	}
	return nil
}

// intact asks every member whether its files are whole.
func intact(members []member) error {
	for _, m := range members {
		if m.can.Checked != nil {
			if err := m.can.Checked.Intact(); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookaheadBytes returns the largest lookahead of the members.
func lookaheadBytes(members []member) (bytes int64) {
	for _, m := range members {
		bytes = max(bytes, m.can.LookaheadBytes())
	}
	return bytes
}

// networkStats adds up the network traffic of the members; the rate is that of the fastest.
func networkStats(members []member) (fetched int64, waited time.Duration, rate float64) {
	for _, m := range members {
		n, w, r := m.can.NetworkStats()
		fetched, waited, rate = fetched+n, waited+w, max(rate, r)
	}
	return fetched, waited, rate
}

// generations returns those of the members' datasets.
func generations(members []member) (folders []string, numbers []int) {
	for _, m := range members {
		f, n := m.can.Generations()
		folders, numbers = append(folders, f...), append(numbers, n...)
	}
	return folders, numbers
}

// idsOf returns the identities of members; nil if one has none.
func idsOf(members []member) []string {
	ids := make([]string, len(members))
	for i, m := range members {
		if ids[i] = m.can.ID(); ids[i] == "" {
			return nil
		}
	}
	return ids
}

// idsIn returns the identities of members in other generations of their datasets; nil if one has none.
func idsIn(members []member, numbers []int) (ids []string, err error) {
	if ids = idsOf(members); ids == nil {
		return nil, nil
	}
	known := true
	for i, m := range members {
		if _, now := m.can.Generations(); len(now) > 0 {
			id, differs := m.can.Generation.IDIn(numbers[:len(now)])
			ids[i], numbers, err = id, numbers[len(now):], errors.Join(err, differs)
			known = known && id != ""
		}
	}
	if !known {
		return nil, err
	}
	return ids, err
}

// fieldOf returns the place of a field in specs, -1 if specs has none of that name.
func fieldOf(specs []tensor.Spec, name string) int {
	for i := range specs {
		if specs[i].Name == name {
			return i
		}
	}
	return -1
}

func names(specs []tensor.Spec) string {
	list := make([]string, len(specs))
	for i, s := range specs {
		list[i] = s.Name
	}
	return strings.Join(list, ", ")
}

// copied returns records [a, b) of a Source in new memory.
func copied(src loader.Source, field string, a, b int) (tensor.View, error) {
	specs := src.Specs()
	at := fieldOf(specs, field)
	if at < 0 {
		return tensor.View{}, fmt.Errorf("combine: there is no field %q", field)
	}
	all := make([]int, b-a)
	consecutive(a, all)
	dst := make([]byte, (b-a)*specs[at].RecordBytes())
	err := src.Gather(context.Background(), field, all, dst)
	return tensor.Of(specs[at], b-a, dst), err
}

// recordError is an error with the number of its record.
type recordError struct {
	error
	record int
}

func (e recordError) Unwrap() error { return e.error }
func (e recordError) Record() int   { return e.record }
func (e recordError) Error() string { return fmt.Sprintf("record %d: %v", e.record, e.error) }

// consecutive sets dst to first, first+1, ...
func consecutive(first int, dst []int) {
	for i := range dst {
		dst[i] = first + i
	}
}
