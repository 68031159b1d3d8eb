package mirror

import (
	"encoding/binary"
	"sync/atomic"
	"time"
	"unsafe"
)

// maxUsers is how many processes can use a mirror at a time.
const maxUsers = 64

// state is shared by the processes that use a mirror: which blocks are present, and who uses which
// segment. It is a file that all of them map, so each word is changed atomically.
//
//	byte 0    magic, 8 bytes
//	     8    blocks, uint64
//	    16    segments, uint64
//	    64    one bit a block: it is present
//	     .    8 bytes a segment: bit k is set while process k uses it
//	     .    4 bytes a segment: when it was last used, in sixteenths of a second since 2026
//
// Data is written before its bit is set, and its bit cleared before data is taken out. Nothing in
// it is trusted after a crash: a block that is present according to the state is compared with its
// checksum before a process uses it.
type state struct {
	memory  []byte
	present []uint64
	users   []uint64
	used    []uint32
	lock    locks
	me      int // bit of this process in users; -1 if it has none
	close   func() error
}

const (
	stateMagic  = "penmir02"
	stateHeader = 64
)

// stateBytes returns the length of the file for the given blocks and segments.
func stateBytes(blocks, segments int64) int64 {
	return stateHeader + (blocks+63)/64*8 + segments*8 + (segments*4+7)/8*8
}

// lay points the parts of a state into its memory, which is aligned to a page.
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

// begin makes the memory, which is zero, a state.
func (s *state) begin(blocks, segments int64) {
	binary.NativeEndian.PutUint64(s.memory[8:], uint64(blocks))
	binary.NativeEndian.PutUint64(s.memory[16:], uint64(segments))
	copy(s.memory, stateMagic)
}

func (s *state) has(block int64) bool {
	return atomic.LoadUint64(&s.present[block/64])>>(block%64)&1 == 1
}

func (s *state) add(block int64) { atomic.OrUint64(&s.present[block/64], 1<<(block%64)) }
func (s *state) remove(block int64) {
	atomic.AndUint64(&s.present[block/64], ^(uint64(1) << (block % 64)))
}

// use says that this process uses a segment from now on. It comes before the look at the
// block's bit, as clearing the bit comes before the look at the users: so one of the two sees
// the other.
func (s *state) use(segment int64) {
	if s.me < 0 {
		return
	}
	if mine := uint64(1) << s.me; atomic.LoadUint64(&s.users[segment])&mine == 0 {
		atomic.OrUint64(&s.users[segment], mine)
		atomic.StoreUint32(&s.used[segment], now())
	}
}

// unuse says that it does not any more.
func (s *state) unuse(segment int64) {
	if s.me < 0 {
		return
	}
	if mine := uint64(1) << s.me; atomic.LoadUint64(&s.users[segment])&mine != 0 {
		atomic.StoreUint32(&s.used[segment], now())
		atomic.AndUint64(&s.users[segment], ^mine)
	}
}

var era = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// now returns the time as a state has it.
func now() uint32 { return uint32(time.Since(era) / (time.Second / 16)) }

// touch says that a segment has just been used.
func (s *state) touch(segment int64) { atomic.StoreUint32(&s.used[segment], now()) }

// clear forgets all blocks.
func (s *state) clear() {
	for i := range s.present {
		atomic.StoreUint64(&s.present[i], 0)
	}
}
