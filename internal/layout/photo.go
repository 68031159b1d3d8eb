package layout

import "bytes"

// IsPhoto reports whether bytes begin as a JPEG or PNG file does. No array of other numbers is likely to.
func IsPhoto(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xd8\xff")) || bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n"))
}
