package source

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"io"
	"iter"
)

// CheckZipName compares the name of a member in the directory of a zip archive with the name in the member's local
// header, as Python's zipfile does. No checksum covers the names, and archive/zip does not compare them, so a
// damaged directory could attach the bytes of one member to the name of another.
func CheckZipName(archive io.ReaderAt, m *zip.File) error {
	end, err := m.DataOffset()
	if err != nil {
		return err
	}
	const fixed = 30 // bytes of the header before the name; the name and extra bytes, few as a rule, follow
	for _, extra := range []int{256, 1<<16 - 1} {
		head := make([]byte, min(end, int64(fixed+len(m.Name)+extra)))
		if err := ReadAt(archive, head, end-int64(len(head))); err != nil {
			return err
		}
		for h := range zipHeaders(head) {
			if string(h[fixed:fixed+binary.LittleEndian.Uint16(h[26:])]) == m.Name {
				return nil
			}
		}
	}
	return errors.New("has another name in its own header than in the archive's directory: the archive is corrupt")
}

// zipHeaders yields each suffix of b that can be the local header of a member (APPNOTE.TXT 4.3.7) whose data begins
// at the end of b. archive/zip gives the offset of the data only, and the header before it has a variable length.
func zipHeaders(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := len(b) - 30; at >= 0; at-- {
			h := b[at:]
			size := 30 + int(binary.LittleEndian.Uint16(h[26:])) + int(binary.LittleEndian.Uint16(h[28:]))
			if string(h[:4]) == "PK\x03\x04" && size == len(h) && !yield(h) {
				return
			}
		}
	}
}
