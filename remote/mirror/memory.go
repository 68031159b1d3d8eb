package mirror

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// memory holds blocks that found no room on disk: the latest ones.
type memory struct {
	limit int64
	on    atomic.Bool

	mu    sync.Mutex
	why   string
	data  map[int64][]byte
	order []int64 // as they came
	bytes int64
}

// active reports whether anything ever had to be held.
func (m *memory) active() bool { return m.on.Load() }

// put takes a block, for the reason that is said, and lets go of the oldest ones.
func (m *memory) put(block int64, data []byte, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.data == nil {
		m.data = make(map[int64][]byte)
	}
	m.why = why
	m.on.Store(true)
	if m.data[block] == nil {
		m.data[block] = data
		m.order = append(m.order, block)
		m.bytes += int64(len(data))
	}
	for m.bytes > m.limit && len(m.order) > 1 {
		oldest := m.order[0]
		m.order = m.order[1:]
		m.bytes -= int64(len(m.data[oldest]))
		delete(m.data, oldest)
	}
}

func (m *memory) get(block int64) []byte {
	if !m.active() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[block]
}

// drop lets go of a block.
func (m *memory) drop(block int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data := m.data[block]; data != nil {
		m.bytes -= int64(len(data))
		delete(m.data, block)
		m.order = slices.DeleteFunc(m.order, func(b int64) bool { return b == block })
	}
}

// reason says why it is used; empty if it is not.
func (m *memory) reason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// buffers keep the memory of requests that have ended for others, by the power of two that it has
// bytes: to grow it would copy what nobody needs, and take pages that were never touched.
var buffers [bits.UintSize]sync.Pool

// borrow returns n bytes, more than none, that hold anything; giveBack takes them back.
func borrow(n int64) *[]byte {
	class := bits.Len64(uint64(n) - 1)
	if b, ok := buffers[class].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<class)
	return &b
}

func giveBack(b *[]byte) { buffers[bits.Len(uint(cap(*b)-1))].Put(b) }
