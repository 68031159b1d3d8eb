package bucketfs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/remote"
)

// kept is a folder of parts of objects that were fetched, which the processes of a host share. A file is a part, and
// its checksum.
type kept struct{ root *os.Root }

// Keep stores everything that is fetched from now on in a folder. Later reads, also of other processes, take it
// from there. Only objects whose versions are known are stored. A full folder stores nothing more.
func (f *FS) Keep(root *os.Root) { f.kept.Store(&kept{root}) }

// partName names a part of a version of an object.
func partName(object string, o remote.Object, off int64, n int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", object, o.ETag, off, n))
	return hex.EncodeToString(h[:16])
}

const sumBytes = 4

// read fills dst from a file. It reports whether the file exists, complete and unchanged.
func (k *kept) read(name string, dst []byte) bool {
	f, err := k.root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var sum [sumBytes]byte
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(dst)+sumBytes) {
		return false
	}
	if _, err := io.ReadFull(f, dst); err != nil {
		return false
	}
	_, err = io.ReadFull(f, sum[:])
	return err == nil && binary.LittleEndian.Uint32(sum[:]) == kernel.CRC32C(0, dst)
}

// write makes a file, unless something fails, such as a full disk.
func (k *kept) write(name string, data []byte) {
	sum := binary.LittleEndian.AppendUint32(nil, kernel.CRC32C(0, data))
	_ = private.Replace(k.root, name, 0o600, data, sum) // without it, the part is fetched again
}
