package npy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// The samples that Digest reads of a file.
const (
	digestBlocks = 64
	digestBytes  = 4096 // of a block
)

// Digest identifies a file of some bytes: 32 hex digits over its size, its first and last bytes, and 62 blocks evenly
// in between. It is the same for a copy of the file, and reads 256 KiB at most. docs/format.md specifies it.
func Digest(r io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, size)
	blocks, each := int64(digestBlocks), int64(digestBytes)
	if size <= blocks*each {
		blocks, each = 1, size
	}
	block := make([]byte, each)
	for i := range blocks {
		at := int64(0)
		if blocks > 1 {
			at = i * ((size - each) / (blocks - 1))
		}
		if i == blocks-1 {
			at = size - each
		}
		if n, err := r.ReadAt(block, at); n < len(block) {
			return "", fmt.Errorf("read %d bytes at %d: %w", len(block), at, err)
		}
		h.Write(block)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
