package store

import "unsafe"

// bytesOf returns the memory of words as bytes. The two have the same lifetime, a []uint64
// has no padding and no pointers, and every byte pattern is a valid byte.
func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}
