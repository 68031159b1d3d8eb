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

// members are the Sources of a combined one, which embeds them for the methods in which no record is named.
type members []member

// Retain takes a lease on every Source, or on none.
func (list members) Retain() error {
	for i, m := range list {
		if err := m.Retain(); err != nil {
			list[:i].Release()
			return err
		}
	}
	return nil
}

// Release gives back a lease of every Source.
func (list members) Release() {
	for _, m := range list {
		m.Release()
	}
}

// warm reads records [first, end) into memory, if they are in mapped memory.
func (m *member) warm(field string, first, end int) error {
	if m.can.Mapped == nil {
		return nil
	}
	return m.can.Mapped.Warm(field, first, end)
}

// fault asks the member whose memory contains addr why a read there failed.
func (list members) fault(addr uintptr) error {
	for _, m := range list {
		if m.can.Fault != nil {
			if err := m.can.Fault.Fault(addr); err != nil {
				return err
			}
		}
	}
	return nil
}

// intact asks every member whether its files are whole.
func (list members) intact() error {
	for _, m := range list {
		if m.can.Checked != nil {
			if err := m.can.Checked.Intact(); err != nil {
				return err
			}
		}
	}
	return nil
}

// LookaheadBytes returns the largest lookahead of the Sources.
func (list members) LookaheadBytes() (bytes int64) {
	for _, m := range list {
		bytes = max(bytes, m.can.LookaheadBytes())
	}
	return bytes
}

// NetworkStats adds up the network traffic of the Sources. The rate is the fastest Source's.
func (list members) NetworkStats() (fetched int64, waited time.Duration, rate float64) {
	for _, m := range list {
		n, w, r := m.can.NetworkStats()
		fetched, waited, rate = fetched+n, waited+w, max(rate, r)
	}
	return fetched, waited, rate
}

// Generations returns the generations of the Sources' datasets.
func (list members) Generations() (folders []string, numbers []int) {
	for _, m := range list {
		f, n := m.can.Generations()
		folders, numbers = append(folders, f...), append(numbers, n...)
	}
	return folders, numbers
}

// decoded adds up how many bytes of chunks the members decoded.
func (list members) decoded() (bytes int64) {
	for _, m := range list {
		if m.can.Chunks != nil {
			bytes += m.can.Chunks.Decoded()
		}
	}
	return bytes
}

// ids returns the identities of members; nil if one has none.
func (list members) ids() []string {
	ids := make([]string, len(list))
	for i, m := range list {
		if ids[i] = m.can.ID(); ids[i] == "" {
			return nil
		}
	}
	return ids
}

// idsIn returns the identities of members in other generations of their datasets; nil if one has none.
func (list members) idsIn(numbers []int) (ids []string, err error) {
	if ids = list.ids(); ids == nil {
		return nil, nil
	}
	known := true
	for i, m := range list {
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

// unheld is embedded in Sources that store nothing, so that there is nothing to hold or to read in advance.
type unheld struct{}

// Prefetch has nothing to do.
func (unheld) Prefetch(string, int, int) error { return nil }

// Retain has nothing to do.
func (unheld) Retain() error { return nil }

// Release has nothing to do.
func (unheld) Release() {}

// Location is not known.
func (unheld) Location(string, int) string { return "" }

// made is embedded in Sources whose records are made when they are asked for.
type made struct{}

// Contiguous returns false: records are never memory of the Source.
func (made) Contiguous(string, int, int) bool { return false }

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

// copiedRagged returns the rows of records [a, b) of a field in new memory.
func copiedRagged(src loader.RaggedSource, spec tensor.Spec, a, b int, offsets []int64) (tensor.View, error) {
	all := make([]int, b-a)
	consecutive(a, all)
	rows, err := src.GatherRagged(context.Background(), spec.Name, all, offsets, nil)
	if err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(spec, int(offsets[b-a]), rows), nil
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
