package archive

import (
	"archive/zip"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/penstock/penstock/prepare/source"
)

// member is a file in an archive. Its bytes are in data, or load reads them from packed or placed.
type member struct {
	name string // with slashes, from the archive's root
	ext  string // extension: what follows the first dot of the last element, in lower case
	data []byte // nil if it was not read
	err  error  // why it cannot be used

	packed *zipMember // place in a zip; nil for tars
	placed *tarPlace  // place in a tar; nil if data was read
}

// fileMember returns the member for a file, and its key. For a file that is no part of a sample (hidden, without an
// extension, or not regular) key is "", and the name is added to ignored.
func fileMember(name string, regular bool, ignored *[]string) (m member, key string) {
	key, ext := splitKey(name)
	// macOS writes ._0001.jpg beside 0001.jpg, which would be another sample.
	if source.IsHidden(path.Base(name)) || ext == "" || !regular {
		*ignored = append(*ignored, name)
		return m, ""
	}
	return member{name: name, ext: ext}, key
}

// memberName returns the cleaned name of a member, relative to the archive's root. A name that leads out of the
// archive is an error and not skipped: nobody makes such an archive except for an attack. Backslashes count as
// slashes, as on Windows.
func memberName(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || len(clean) > 1 && clean[1] == ':' ||
		strings.IndexByte(clean, 0) >= 0 {
		return "", fmt.Errorf("member %q leads outside of the archive; such archives are refused", source.Clip(name))
	}
	return clean, nil
}

// splitKey divides a name at the first dot of its last element, as WebDataset does. ext is "" for names without a
// dot, or with only a leading one.
func splitKey(name string) (key, ext string) {
	dir, base := path.Split(name)
	at := strings.IndexByte(base, '.')
	// A name that begins with its only dot is hidden, and has no extension.
	if at <= 0 {
		return name, ""
	}
	return dir + base[:at], strings.ToLower(base[at+1:])
}

// zipMember is a file in a zip archive, with the archive that load reads it from.
type zipMember struct {
	*zip.File
	archive io.ReaderAt
}

// size returns the number of bytes that load will hold in memory.
func (m member) size() int64 {
	switch {
	case m.packed != nil:
		return int64(m.packed.UncompressedSize64)
	case m.placed != nil:
		return m.placed.bytes
	}
	return int64(len(m.data))
}
