package preprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/store"
)

// stub says where a file is that was sent. It is kept in place of the file, in a file of its
// name and length with its header, whose payload is a hole but for the stub: so what goes on
// with a build finds all files as it left them, on next to no space.
type stub struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	ETag   string `json:"etag,omitempty"`
	CRC32C string `json:"crc32c"` // of all bytes, computed when they were sent
}

// stubMagic begins a stub, behind the header of the file.
const stubMagic = "penstock: this file was sent: "

// A stub's file has permissions that a dataset's has not, so no payload can be taken for one.
const (
	finalMode = 0o444 // of files that are finished, less what the umask takes, see store.SyncFile
	stubMode  = 0o500
)

// isFinal reports whether a file is finished.
func isFinal(mode fs.FileMode) bool { return mode.Perm()&^finalMode == 0 }

// leastStub is the size of the smallest file that a stub takes the place of; smaller ones
// stay here until the end.
const leastStub = 2 * store.HeaderBytes

// readStub returns the stub that is in a file; false if it is none.
func readStub(path string) (stub, bool) {
	var s stub
	f, err := os.Open(path)
	if err != nil {
		return s, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() < leastStub || isFinal(info.Mode()) && os.PathSeparator == '/' {
		return s, false
	}
	head := make([]byte, store.HeaderBytes)
	if _, err := f.ReadAt(head, store.HeaderBytes); err != nil {
		return s, false
	}
	text, ok := bytes.CutPrefix(head, []byte(stubMagic))
	end := bytes.IndexByte(text, '\n')
	if !ok || end < 0 || json.Unmarshal(text[:end], &s) != nil || s.Size != info.Size() {
		return s, false
	}
	return s, true
}

// replace puts the stub in the place of the file, in one step.
func (s stub) replace(path string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	header := make([]byte, store.HeaderBytes)
	if err := readHead(path, header); err != nil {
		return err
	}
	if len(stubMagic)+len(text)+1 > store.HeaderBytes {
		return nil // a key of thousands of bytes: the file stays
	}
	folder, name, err := private.Parent(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	temp := name + ".sent"
	f, err := private.Create(folder, temp, stubMode)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s%s%s\n", header, stubMagic, text)
	if err = errors.Join(err, f.Chmod(stubMode), f.Truncate(s.Size), f.Sync(), f.Close()); err == nil {
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
