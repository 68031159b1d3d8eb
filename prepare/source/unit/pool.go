package unit

import (
	"container/list"
	"errors"
	"io"
	"sync"

	"github.com/penstock/penstock/prepare/source/array"
)

// mostOpen is the number of units that stay open. An open unit takes a file descriptor, or memory for its part of
// the file's metadata.
const mostOpen = 256

// pool opens units when they are read, and closes the least recently used ones. A unit in use is never closed:
// users counts its users, and the last user closes a unit that has left the pool.
type pool struct {
	units   []Unit
	members []string

	mu     sync.Mutex
	open   map[int]*opened // by number of the unit
	recent *list.List      // numbers of open units, the most recently used one first
}

// opened is an open unit.
type opened struct {
	once    sync.Once // opens the unit, outside of pool.mu: opening may take a request
	columns []array.Column
	closer  io.Closer
	err     error

	// pool.mu guards the fields below.
	users  int  // goroutines between take and giveBack
	left   bool // the unit has left the pool, so its last user closes it
	recent *list.Element
}

func newPool(units []Unit, members []string) *pool {
	return &pool{units: units, members: members, open: make(map[int]*opened), recent: list.New()}
}

// take returns a unit, opened, until the caller gives it back. Columns that can only be read in order are held in
// memory, since records are read in any order.
func (p *pool) take(k int) (*opened, error) {
	p.mu.Lock()
	o := p.open[k]
	if o == nil {
		o = &opened{recent: p.recent.PushFront(k)}
		p.open[k] = o
	} else {
		p.recent.MoveToFront(o.recent)
	}
	o.users++
	// The new unit is the most recent, so it is not among the removed ones.
	left := p.trim(mostOpen)
	p.mu.Unlock()
	o.once.Do(func() {
		o.columns, o.closer, o.err = p.units[k].Open(p.members)
		for i, c := range o.columns {
			if c.At == nil {
				o.columns[i] = c.Held()
			}
		}
	})
	// A unit that cannot be opened keeps its error in the pool, so that it is not tried for each record.
	if err := errors.Join(o.err, closeAll(left)); err != nil {
		return nil, errors.Join(within(p.units[k], err), p.giveBack(o))
	}
	return o, nil
}

// giveBack ends a use of a unit.
func (p *pool) giveBack(o *opened) error {
	p.mu.Lock()
	o.users--
	last := o.left && o.users == 0
	p.mu.Unlock()
	if last {
		return o.close()
	}
	return nil
}

// trim removes the least recently used units until n are left, and returns the removed units without users, which
// the caller closes after it has released p.mu.
func (p *pool) trim(n int) (unused []*opened) {
	for p.recent.Len() > n {
		k := p.recent.Remove(p.recent.Back()).(int)
		o := p.open[k]
		delete(p.open, k)
		if o.left = true; o.users == 0 {
			unused = append(unused, o)
		}
	}
	return unused
}

// Close closes all units. A unit that is in use is closed by its last user.
func (p *pool) Close() error {
	p.mu.Lock()
	left := p.trim(0)
	p.mu.Unlock()
	return closeAll(left)
}

func closeAll(list []*opened) (err error) {
	for _, o := range list {
		err = errors.Join(err, o.close())
	}
	return err
}

func (o *opened) close() error {
	if o.closer == nil {
		return nil
	}
	return o.closer.Close()
}
