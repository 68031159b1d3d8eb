package kernel

import (
	"encoding"
	"encoding/binary"
	"hash"
)

// shaLanes is how many hashes a kernel computes side by side. Fewer than leastLanes, or of less than leastBlocks, are
// as fast one by one.
const (
	shaLanes    = 16
	leastLanes  = 4
	leastBlocks = 4
)

// WriteSHA256s writes n bytes of p to each of the hashes, which are of crypto/sha256: the first n to the first one, and
// so on.
func WriteSHA256s(hashes []hash.Hash, p []byte, n int) {
	for len(hashes) > 0 {
		lanes := min(len(hashes), shaLanes)
		if !useLanes || lanes < leastLanes || n < leastBlocks*64 || !writeLanes(hashes[:lanes], p, n) {
			for i, h := range hashes[:lanes] {
				h.Write(p[i*n : (i+1)*n])
			}
		}
		hashes, p = hashes[lanes:], p[lanes*n:]
	}
}

// The state of a hash, as crypto/sha256 marshals it: its name, eight words, the open block, and the length, big endian.
const (
	shaWords  = 4
	shaLength = shaWords + 8*4 + 64
	shaState  = shaLength + 8
)

// writeLanes is WriteSHA256s for at most shaLanes hashes. It returns false if their open blocks have other lengths.
func writeLanes(hashes []hash.Hash, p []byte, n int) bool {
	var states [shaLanes][shaState]byte
	for i, h := range hashes {
		if b, err := h.(encoding.BinaryAppender).AppendBinary(states[i][:0]); err != nil || len(b) != shaState {
			return false
		}
		if i > 0 && openBytes(&states[i]) != openBytes(&states[0]) {
			return false
		}
	}
	first := (64 - openBytes(&states[0])) % 64 // which fill the open block
	blocks := (n - first) / 64
	var state [8][shaLanes]uint32
	var offsets [shaLanes]uint32
	for i, h := range hashes {
		if first > 0 {
			h.Write(p[i*n : i*n+first])
			_, _ = h.(encoding.BinaryAppender).AppendBinary(states[i][:0]) // it was possible before
		}
		offsets[i] = uint32(i*n + first)
		for k := range state {
			state[k][i] = binary.BigEndian.Uint32(states[i][shaWords+4*k:])
		}
	}
	for i := len(hashes); i < shaLanes; i++ {
		offsets[i] = offsets[0]
	}
	shaFast(&state, p, &offsets, blocks)
	for i, h := range hashes {
		for k := range state {
			binary.BigEndian.PutUint32(states[i][shaWords+4*k:], state[k][i])
		}
		length := states[i][shaLength:]
		binary.BigEndian.PutUint64(length, binary.BigEndian.Uint64(length)+uint64(64*blocks))
		if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(states[i][:]); err != nil {
			panic("kernel: a state of SHA-256 is refused: " + err.Error())
		}
		h.Write(p[i*n+first+64*blocks : (i+1)*n])
	}
	return true
}

// openBytes returns how many bytes are in the open block of a state.
func openBytes(state *[shaState]byte) int {
	return int(binary.BigEndian.Uint64(state[shaLength:]) % 64)
}
