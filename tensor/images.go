package tensor

import (
	"encoding/binary"
	"fmt"
)

// ImageHead is the size, in bytes, of the length before each image file of a record of content [Images].
const ImageHead = 4

// AppendImage appends an image file to a record of content [Images]: its length, a uint32, little endian, and its bytes.
// A record without images is empty.
func AppendImage(record, file []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(record, uint32(len(file))), file...)
}

// CutImage splits a record of content [Images] into its first image file and the record of the other files. Both are
// parts of record. The error says that a length does not match the bytes that follow.
func CutImage(record []byte) (file, rest []byte, err error) {
	if len(record) < ImageHead {
		return nil, nil, fmt.Errorf("%d bytes where the length of an image file is expected", len(record))
	}
	n, rest := uint64(binary.LittleEndian.Uint32(record)), record[ImageHead:]
	if n > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("an image file of %d bytes, of which there are %d", n, len(rest))
	}
	return rest[:n:n], rest[n:], nil
}

// EachImage calls do with the image files of a record of content [Images]. An error says which image it is of, and ends
// the loop.
func EachImage(record []byte, do func(file []byte) error) error {
	for n := 0; len(record) > 0; n++ {
		file, rest, err := CutImage(record)
		if err == nil {
			err = do(file)
		}
		if err != nil {
			return fmt.Errorf("image %d: %w", n, err)
		}
		record = rest
	}
	return nil
}

// CountImages returns how many image files a record of content [Images] has.
func CountImages(record []byte) (n int, err error) {
	for ; len(record) > 0 && err == nil; n++ {
		_, record, err = CutImage(record)
	}
	return n, err
}
