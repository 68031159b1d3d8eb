package combine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/internal/digest"
	"github.com/penstock/penstock/loader/internal/order"
	"github.com/penstock/penstock/tensor"
)

// member is one of the Sources that a combined Source is made of, with its optional interfaces.
type member struct {
	loader.Source
	can loader.Capabilities
}

// newMember resolves the capabilities of src. It returns an error if src has only some methods of
// an interface.
func newMember(src loader.Source) (member, error) {
	can, err := loader.CapabilitiesOf(src)
	return member{src, can}, err
}

// members are the Sources that a combined Source is made of. The combined Source embeds them for
// all methods that name no record.
type members []member

// Retain takes a lease on every Source, or on none: a partial lease could not be given back by
// Release.
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

// warm reads records [first, end) into memory, if the member's memory is mapped.
func (m *member) warm(field string, first, end int) error {
	if m.can.Mapped == nil {
		return nil
	}
	return m.can.Mapped.Warm(field, first, end)
}

// fetch names records that will be needed, if the member fetches over a network.
func (m *member) fetch(ctx context.Context, field string, records []int) error {
	if m.can.Remote == nil {
		return nil
	}
	return m.can.Remote.Fetch(ctx, field, records)
}

// classes returns the class names of a field, if the member knows them.
func (m *member) classes(field string) []string {
	if m.can.Classed == nil {
		return nil
	}
	return m.can.Classed.Classes(field)
}

// describeReads returns how a field is read, if the member knows.
func (m *member) describeReads(field string) (how, why string, resident float64) {
	if m.can.Described == nil {
		return "", "", -1
	}
	return m.can.Described.DescribeReads(field)
}

// fault finds the member whose memory contains addr, and returns why a read there failed.
func (list members) fault(addr uintptr) (part int, err error) {
	for i, m := range list {
		if m.can.Fault != nil {
			if err := m.can.Fault.Fault(addr); err != nil {
				return i, err
			}
		}
	}
	return 0, nil
}

// intact asks every member whether its files are whole.
func (list members) intact() (part int, err error) {
	for i, m := range list {
		if m.can.Checked != nil {
			if err := m.can.Checked.Intact(); err != nil {
				return i, err
			}
		}
	}
	return 0, nil
}

// LookaheadBytes returns the largest lookahead of the Sources.
func (list members) LookaheadBytes() (bytes int64) {
	for _, m := range list {
		bytes = max(bytes, m.can.LookaheadBytes())
	}
	return bytes
}

// NetworkStats adds up the traffic of the Sources. The rate is the rate of the fastest Source.
func (list members) NetworkStats() (fetched int64, waited time.Duration, rate float64) {
	for _, m := range list {
		n, w, r := m.can.NetworkStats()
		fetched, waited, rate = fetched+n, waited+w, max(rate, r)
	}
	return fetched, waited, rate
}

// Generations returns the folders of the datasets that the Sources read, and the number of each
// dataset's open generation, Source by Source. A Source without generations adds nothing.
func (list members) Generations() (folders []string, numbers []int) {
	for _, m := range list {
		f, n := m.can.Generations()
		folders, numbers = append(folders, f...), append(numbers, n...)
	}
	return folders, numbers
}

// named is the Sources of a combined Source, with the identity of the combination. The identity is
// computed once, since hashing a list of records takes time.
type named struct {
	members
	kind string       // for errors, and in the identity
	how  func() []any // the parameters that the identity has besides the Sources' identities
	once sync.Once
	id   string
}

// ID returns a digest of the Sources' identities and of the parameters. It is empty if one of the
// Sources has no identity.
func (c *named) ID() string {
	c.once.Do(func() { c.id = c.idOf(c.ids()) })
	return c.id
}

// IDIn returns the ID of the same records in other generations of the datasets.
func (c *named) IDIn(numbers []int) (string, error) {
	ids, err := c.idsIn(numbers)
	return c.idOf(ids), err
}

// idOf returns the identity of the combination over Sources with the given identities.
func (c *named) idOf(sources []string) string {
	if sources == nil {
		return ""
	}
	return c.kind + "(" + digest.Of(append([]any{sources}, c.how()...)...) + ")"
}

// ids returns the members' identities, or nil if a member has no identity.
func (list members) ids() []string {
	ids := make([]string, len(list))
	for i, m := range list {
		if ids[i] = m.can.ID(); ids[i] == "" {
			return nil
		}
	}
	return ids
}

// idsIn returns the members' identities in other generations of their datasets, or nil if an
// identity is not known.
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

// unheld is embedded in Sources that hold no files or mapped memory: there is nothing to lease and
// nothing to read in advance.
type unheld struct{}

func (unheld) Prefetch(string, int, int) error { return nil }

// Retain does nothing: the Source cannot be closed.
func (unheld) Retain() error { return nil }

func (unheld) Release() {}

// Location returns "": the records are stored nowhere.
func (unheld) Location(string, int) string { return "" }

// made is embedded in Sources that compute their records on request.
type made struct{}

// Contiguous returns false: records are never memory of the Source.
func (made) Contiguous(string, int, int) bool { return false }

// fieldOf returns the index of a field in specs, or -1. A linear search is faster than a map for
// the few fields of a dataset.
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
	order.Consecutive(a, all)
	dst := make([]byte, (b-a)*specs[at].RecordBytes())
	err := src.Gather(context.Background(), field, all, dst)
	return tensor.Of(specs[at], b-a, dst), err
}

// copiedRagged returns the rows of records [a, b) of a field in new memory.
func copiedRagged(src loader.RaggedSource, spec tensor.Spec, a, b int, offsets []int64) (tensor.View, error) {
	all := make([]int, b-a)
	order.Consecutive(a, all)
	rows, err := src.GatherRagged(context.Background(), spec.Name, all, offsets, nil)
	if err != nil {
		return tensor.View{}, err
	}
	return tensor.Of(spec, int(offsets[b-a]), rows), nil
}

// recordError is an error with the number of the record in the combined Source. Errors of the
// Sources name the numbers there, which the user does not know.
type recordError struct {
	error
	record int
	text   string
}

// failed adds the number of a record to an error.
func failed(err error, record int) error {
	return recordError{err, record, fmt.Sprint("record ", record)}
}

func (e recordError) Unwrap() error { return e.error }
func (e recordError) Record() int   { return e.record }
func (e recordError) Error() string { return e.text + ": " + e.error.Error() }
