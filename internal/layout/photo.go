package layout

import "bytes"

// IsPhoto reports whether bytes begin as a JPEG or PNG file does. No array of other numbers is likely to.
func IsPhoto(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xd8\xff")) || bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n"))
}

// MayBeFiles reports whether records of uint8 of a shape may be image files that zeros fill up: one file, or a few, as of
// cameras. Gray pictures have two axes, too, and their bytes are not examined, because reading them may take long.
func MayBeFiles(shape []int) bool {
	const fewFiles, smallFile = 16, 64
	return len(shape) == 1 || len(shape) == 2 && shape[0] <= fewFiles && shape[1] >= smallFile
}
