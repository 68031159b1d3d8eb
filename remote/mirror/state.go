package mirror

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"
)

// maxUsers is the number of processes that can use a mirror at a time: bits of a word in the state.
const maxUsers = 64

// state is what the processes that use a mirror share: which blocks are present, and who uses which
// segment. It is a file that all of them map, so each word is changed atomically.
//
//	byte 0    magic, 8 bytes
//	     8    blocks, uint64
//	    16    segments, uint64
//	    64    one bit for each block: it is present
//	     .    8 bytes for each segment: bit k is set while process k uses it
//	     .    4 bytes for each segment: when it was last used, in sixteenths of a second since 2026
//
// Numbers have the byte order of the machine. A block's data are written before its bit is set, and
// its bit is cleared before data are removed. After a crash nothing in the state is trusted: a
// process compares a block that is present according to the state with its checksum before it uses
// the block.
type state struct {
	memory  []byte
	present []uint64 // bits by block
	users   []uint64 // bits of processes by segment
	used    []uint32 // times by segment
	lock    locks
	me      int // the bit of this process in users; -1 if all are taken
	close   func() error
}

// The magic, whose last digits are the version of the layout, and the length of the header.
const (
	stateMagic  = "penmir02"
	stateHeader = 64
)

// stateBytes returns the length of a state with that many blocks and segments.
func stateBytes(blocks, segments int64) int64 {
	return stateHeader + (blocks+63)/64*8 + segments*8 + (segments*4+7)/8*8
}

// lay sets the slices of a state to their places in its memory, which is aligned to a page.
func (s *state) lay(blocks, segments int64) {
	base := unsafe.Pointer(unsafe.SliceData(s.memory))
	words := (blocks + 63) / 64
	s.present = unsafe.Slice((*uint64)(unsafe.Add(base, stateHeader)), words)
	s.users = unsafe.Slice((*uint64)(unsafe.Add(base, stateHeader+words*8)), segments)
	s.used = unsafe.Slice((*uint32)(unsafe.Add(base, stateHeader+words*8+segments*8)), segments)
}

// fits reports whether the memory has the length of a state of the given blocks and segments.
func (s *state) fits(blocks, segments int64) bool {
	return string(s.memory[:8]) == stateMagic && int64(binary.NativeEndian.Uint64(s.memory[8:])) == blocks &&
		int64(binary.NativeEndian.Uint64(s.memory[16:])) == segments
}

// begin makes zeroed memory an empty state. The magic is written last, so that a state without it
// is not finished.
func (s *state) begin(blocks, segments int64) {
	binary.NativeEndian.PutUint64(s.memory[8:], uint64(blocks))
	binary.NativeEndian.PutUint64(s.memory[16:], uint64(segments))
	copy(s.memory, stateMagic)
}

// has reports whether a block is present.
func (s *state) has(block int64) bool {
	return atomic.LoadUint64(&s.present[block/64])>>(block%64)&1 == 1
}

// add marks a block as present.
func (s *state) add(block int64) { atomic.OrUint64(&s.present[block/64], 1<<(block%64)) }

// remove marks a block as absent.
func (s *state) remove(block int64) {
	atomic.AndUint64(&s.present[block/64], ^(uint64(1) << (block % 64)))
}

// use announces that this process uses a segment from now on. A reader calls use before it looks at
// the block's bit, and an evicting process clears the bit before it looks at the users: so at least
// one of the two processes sees the change of the other.
func (s *state) use(segment int64) {
	if s.me < 0 {
		return
	}
	if mine := uint64(1) << s.me; atomic.LoadUint64(&s.users[segment])&mine == 0 {
		atomic.OrUint64(&s.users[segment], mine)
		atomic.StoreUint32(&s.used[segment], now())
	}
}

// unuse ends a use.
func (s *state) unuse(segment int64) {
	if s.me < 0 {
		return
	}
	if mine := uint64(1) << s.me; atomic.LoadUint64(&s.users[segment])&mine != 0 {
		atomic.StoreUint32(&s.used[segment], now())
		atomic.AndUint64(&s.users[segment], ^mine)
	}
}

// era is the zero of the times in a state.
var era = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// now returns the current time in a state's units, of which uint32 has eight years.
func now() uint32 { return uint32(time.Since(era) / (time.Second / 16)) }

// touch records that a segment has just been used.
func (s *state) touch(segment int64) { atomic.StoreUint32(&s.used[segment], now()) }

// clear marks all blocks as absent.
func (s *state) clear() {
	for i := range s.present {
		atomic.StoreUint64(&s.present[i], 0)
	}
}
