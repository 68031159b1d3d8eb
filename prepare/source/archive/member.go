package archive

import (
	"archive/zip"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/penstock/penstock/prepare/source"
)

// member is a file in an archive.
type member struct {
	name string // with slashes, from the archive's root
	ext  string // the part after the first dot of its last element, in lower case
	data []byte // nil if it was not read
	err  error  // why it cannot be used

	packed *zipMember // where it is read by load
	placed *tarPlace  // the same
}

// fileMember returns the member that a file is, "" as key where it is not part of a sample.
func fileMember(name string, regular bool, ignored *[]string) (m member, key string) {
	key, ext := splitKey(name)
	if source.IsHidden(path.Base(name)) || ext == "" || !regular {
		*ignored = append(*ignored, name)
		return m, ""
	}
	return member{name: name, ext: ext}, key
}

// memberName returns the name from the archive's root on.
func memberName(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || len(clean) > 1 && clean[1] == ':' ||
		strings.IndexByte(clean, 0) >= 0 {
		return "", fmt.Errorf("member %q leads outside of the archive; such archives are refused", source.Clip(name))
	}
	return clean, nil
}

// splitKey splits a name as WebDataset does: at the first dot of its last element.
func splitKey(name string) (key, ext string) {
	dir, base := path.Split(name)
	at := strings.IndexByte(base, '.')
	if at <= 0 {
		return name, ""
	}
	return dir + base[:at], strings.ToLower(base[at+1:])
}

// zipMember is a file in a zip archive.
type zipMember struct {
	*zip.File
	archive io.ReaderAt
}

// size returns how many bytes load takes.
func (m member) size() int64 {
	switch {
	case m.packed != nil:
		return int64(m.packed.UncompressedSize64)
	case m.placed != nil:
		return m.placed.bytes
	}
	return int64(len(m.data))
}
