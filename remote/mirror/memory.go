package mirror

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// memory holds the latest blocks that found no room on disk, up to limit bytes.
type memory struct {
	limit int64
	on    atomic.Bool

	mu    sync.Mutex
	why   string
	data  map[int64][]byte
	order []int64 // block numbers, the oldest first
	bytes int64
}

// active reports whether anything ever had to be held.
func (m *memory) active() bool { return m.on.Load() }

// put adds a block, with the reason why it is not on disk, and drops the oldest blocks beyond the
// limit.
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

// get returns a block, nil if it is not held.
func (m *memory) get(block int64) []byte {
	if !m.active() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[block]
}

// drop removes a block.
func (m *memory) drop(block int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data := m.data[block]; data != nil {
		m.bytes -= int64(len(data))
		delete(m.data, block)
		m.order = slices.DeleteFunc(m.order, func(b int64) bool { return b == block })
	}
}

// reason returns why blocks are held in memory, "" if no block ever was.
func (m *memory) reason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// buffers keeps the memory of finished requests for later requests, by the power of two of
// its size.
var buffers [bits.UintSize]sync.Pool

// borrow returns n > 0 bytes with arbitrary content. giveBack returns them to buffers.
func borrow(n int64) *[]byte {
	class := bits.Len64(uint64(n) - 1)
	if b, ok := buffers[class].Get().(*[]byte); ok {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n, 1<<class)
	return &b
}

// giveBack returns memory of borrow. It must not be used afterwards.
func giveBack(b *[]byte) { buffers[bits.Len(uint(cap(*b)-1))].Put(b) }
