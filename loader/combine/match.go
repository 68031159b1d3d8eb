package combine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/internal/permute"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/expr"
)

// keyed is one side of a join: a Source, and the key by which its records are matched.
type keyed struct {
	member
	field string
	key   expr.Key
}

// matchPart is how many records of the right side are in memory at a time, at about 24 bytes each.
// The left side is read once per part.
const matchPart = 1 << 26

// none marks a record without a match.
const none = 1<<32 - 1

// match finds, for each record of the left side, the record of the right side that has the same
// key. Several goroutines read the keys, so that the hash table is filled by compare-and-swap and
// taken is atomic; mu guards only the first pair of equal keys.
type match struct {
	ctx         context.Context
	left, right keyed
	many        bool // records of the left side may have the same match
	part        int

	of     []uint32        // by record of the left side: the one of the right side, or none
	taken  []atomic.Uint64 // one bit a record of the right side: whether it is the match of one
	seed   maphash.Seed
	hashes []uint64        // of a part of the right side
	slots  []atomic.Uint64 // a hash table: the upper half of a hash, and 1 + its place in hashes

	mu    sync.Mutex
	twice [2]int // two records with one key: the first such pair
	side  *keyed // that they are of
}

// errHash is the error of two different keys with the same 64-bit hash.
var errHash = errors.New("two keys have one hash")

// find sets m.of, part by part of the right side.
func (m *match) find() error {
	n := m.right.Len()
	if n >= none || m.left.Len() >= none {
		return fmt.Errorf("a join is of fewer than %d records a side", uint32(none))
	}
	m.of, m.taken = make([]uint32, m.left.Len()), make([]atomic.Uint64, (n+63)/64)
	for i := range m.of {
		m.of[i] = none
	}
	m.seed = maphash.MakeSeed()
	for first := 0; first < n; first += m.part {
		if err := m.matchPart(first, min(first+m.part, n)); err != nil {
			return err
		}
	}
	m.hashes, m.slots = nil, nil
	return m.verify()
}

// matchPart matches records [first, end) of the right side.
func (m *match) matchPart(first, end int) error {
	size := 1 << bits.Len(uint(end-first)*3/2)
	m.hashes, m.slots = make([]uint64, end-first), make([]atomic.Uint64, size)
	err := m.right.key.Each(m.ctx, first, end, func(v *expr.Values) error {
		for i := range v.N {
			place := v.First + i - first
			h := m.hash(v, i, m.right.key)
			m.hashes[place] = h
			if other := m.insert(h, uint32(place)); other >= 0 {
				m.found(&m.right, first+other, v.First+i)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.side != nil {
		return m.duplicate()
	}
	err = m.left.key.Each(m.ctx, 0, m.left.Len(), func(v *expr.Values) error {
		for i := range v.N {
			if place := m.lookup(m.hash(v, i, m.left.key)); place >= 0 {
				m.take(v.First+i, first+place)
			}
		}
		return nil
	})
	if err == nil && m.side != nil {
		err = m.duplicate()
	}
	return err
}

// take makes a record of the right side the match of a record of the left side.
func (m *match) take(left, right int) {
	if before := m.of[left]; before != none {
		m.found(&m.right, int(before), right)
		return
	}
	m.of[left] = uint32(right)
	bit := uint64(1) << (right % 64)
	if before := m.taken[right/64].Or(bit); before&bit != 0 && !m.many {
		m.found(&m.left, left, left)
	}
}

// hash returns the hash of a key. Equal numbers have the same hash whatever their types, and
// different numbers have different hashes: Mix64 is a bijection, so that integers need no
// comparison.
func (m *match) hash(v *expr.Values, i int, key expr.Key) uint64 {
	if key.Text {
		return maphash.Bytes(m.seed, v.Text(i))
	}
	x := v.Integers[i]
	if x < 0 && key.Unsigned() != m.left.key.Unsigned() { // a number that the other type does not have
		var b [9]byte
		binary.NativeEndian.PutUint64(b[:], uint64(x))
		if key.Unsigned() {
			b[8] = 1
		}
		return maphash.Bytes(m.seed, b[:])
	}
	return permute.Mix64(uint64(x))
}

// insert puts a place into the hash table. It returns the place of an entry with the same hash, or
// -1.
func (m *match) insert(h uint64, place uint32) int {
	mask := uint64(len(m.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := m.slots[i].Load()
		if slot == 0 && m.slots[i].CompareAndSwap(0, h&tag|uint64(place+1)) {
			return -1
		}
		if slot = m.slots[i].Load(); m.is(slot, h) {
			return int(slot&^tag) - 1
		}
	}
}

// lookup returns the place that has a hash, or -1.
func (m *match) lookup(h uint64) int {
	mask := uint64(len(m.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		slot := m.slots[i].Load()
		if slot == 0 {
			return -1
		}
		if m.is(slot, h) {
			return int(slot&^tag) - 1
		}
	}
}

// tag masks the hash's upper half, which is stored in a slot. Few other hashes share it, so that
// few entries have to be compared as a whole.
const tag = 0xffffffff << 32

// is reports whether a slot, which is not empty, belongs to a hash.
func (m *match) is(slot, h uint64) bool { return slot&tag == h&tag && m.hashes[slot&^tag-1] == h }

// found keeps the first pair of records of one side with the same key. Goroutines find pairs in any
// order, and the error should be the same in each run.
func (m *match) found(side *keyed, a, b int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, b = min(a, b), max(a, b)
	if m.side == nil || b < m.twice[1] || b == m.twice[1] && a < m.twice[0] {
		m.side, m.twice = side, [2]int{a, b}
	}
}

// duplicate returns the error of two records with the same key. The keys are compared once more, as
// only their hashes are known to be equal.
func (m *match) duplicate() error {
	a, b := m.twice[0], m.twice[1]
	if m.side == &m.left {
		a, b = m.sameMatch()
	}
	text, same, err := m.side.compare(m.ctx, a, b)
	switch {
	case err != nil:
		return err
	case !same:
		return errHash
	case m.side == &m.left:
		return fmt.Errorf("records %d and %d of the left side have the same %s, %s; let many be true, or leave one of them "+
			"out", a, b, m.side.field, text)
	}
	return fmt.Errorf("records %d and %d of the right side have the same %s, %s; leave one of them out", a, b,
		m.side.field, text)
}

// sameMatch returns the first two records of the left side that match the same record.
func (m *match) sameMatch() (a, b int) {
	first := make(map[uint32]int)
	for i, k := range m.of {
		if before, ok := first[k]; ok {
			return before, i
		}
		if k != none {
			first[k] = i
		}
	}
	panic("combine: join: no two records have the same match")
}

// compare reports whether two records have the same key, and returns the text of the first one.
func (k *keyed) compare(ctx context.Context, a, b int) (text string, same bool, err error) {
	var texts [2]string
	for i, record := range []int{a, b} {
		err := k.key.Each(ctx, record, record+1, func(v *expr.Values) error {
			texts[i] = k.key.Show(v, 0)
			return nil
		})
		if err != nil {
			return "", false, err
		}
	}
	return texts[0], texts[0] == texts[1], nil
}

// verify compares the texts of keys that were matched by their hashes. Integers need no comparison,
// because their hashes are unique.
func (m *match) verify() error {
	if !m.left.key.Text {
		return nil
	}
	var left, right []int
	for i, k := range m.of {
		if k != none {
			left, right = append(left, i), append(right, int(k))
		}
	}
	sides := [2]expr.Key{}
	for i, s := range []struct {
		of      keyed
		records []int
	}{{m.left, left}, {m.right, right}} {
		v, err := newSelect(s.of.Source, Select{Records: s.records})
		if err != nil {
			return err
		}
		if sides[i], err = textKey(m.ctx, v, s.of.field); err != nil {
			return err
		}
	}
	return sides[0].Each(m.ctx, 0, len(left), func(v *expr.Values) error {
		return sides[1].Each(m.ctx, v.First, v.First+v.N, func(w *expr.Values) error {
			for i := range w.N {
				if string(v.Text(w.First-v.First+i)) != string(w.Text(i)) {
					return errHash
				}
			}
			return nil
		})
	})
}

// textKey returns the key of a field as text.
func textKey(ctx context.Context, src loader.Source, field string) (expr.Key, error) {
	k, err := expr.KeyOf(ctx, src, field)
	if err == nil && !k.Text {
		return k.Named()
	}
	return k, err
}
