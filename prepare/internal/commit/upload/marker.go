package upload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// marker says where a file is that was sent. It takes the place of the file: a file of the same name, length and
// header, whose payload is a hole but for the marker. A build that is resumed so finds all files with the lengths that
// it left, on next to no space.
type marker struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	ETag   string `json:"etag,omitempty"`
	CRC32C string `json:"crc32c"` // of all bytes, computed when they were sent
}

// markerMagic begins a marker, after the header of the file.
const markerMagic = "penstock: this file was sent: "

// markerMode is the mode of markers. No file of a dataset is executable, so no payload that begins like a marker can be
// taken for one.
const markerMode = 0o500

// isFinal reports whether a file is finished.
func isFinal(mode fs.FileMode) bool { return mode.Perm()&^part.FinalMode == 0 }

// leastMarker is the size of the smallest file that a marker can take the place of, as a marker has a header and its
// text. Smaller files stay in the local folder until the end.
const leastMarker = 2 * layout.HeaderBytes

// readMarker returns the marker that a file is, and false if the file is no marker.
func readMarker(path string) (marker, bool) {
	var s marker
	f, err := os.Open(path)
	if err != nil {
		return s, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < leastMarker || isFinal(info.Mode()) && os.PathSeparator == '/' {
		return s, false
	}
	head := make([]byte, layout.HeaderBytes)
	if _, err := f.ReadAt(head, layout.HeaderBytes); err != nil {
		return s, false
	}
	text, ok := bytes.CutPrefix(head, []byte(markerMagic))
	end := bytes.IndexByte(text, '\n')
	if !ok || end < 0 || json.Unmarshal(text[:end], &s) != nil || s.Size != info.Size() {
		return s, false
	}
	return s, true
}

// replace puts the marker in the place of the file by a rename, after its bytes are on the disk: a crash leaves the
// file or the whole marker.
func (s marker) replace(path string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	header := make([]byte, layout.HeaderBytes)
	if err := readHead(path, header); err != nil {
		return err
	}
	if len(markerMagic)+len(text)+1 > layout.HeaderBytes {
		return nil // a key of thousands of bytes: the file stays
	}
	folder, name, err := private.Parent(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	temp := name + ".sent"
	f, err := private.Create(folder, temp, markerMode)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s%s%s\n", header, markerMagic, text)
	if err = errors.Join(err, f.Chmod(markerMode), f.Truncate(s.Size), f.Sync(), f.Close()); err == nil {
		err = folder.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, folder.Remove(temp))
	}
	return nil
}

func readHead(path string, header []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.ReadFull(f, header)
	return err
}
