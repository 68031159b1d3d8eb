package write

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// arrayFile writes one column of the open shard and computes the checksums of its blocks. The header of an .npy file
// contains the number of rows, so create leaves room for the header and close fills it in.
type arrayFile struct {
	spec  tensor.Spec
	frame *Frame // nil for a .npy file
	in    stagedFiles
	sums  BlockSums
	file  *os.File
	at    int64 // bytes written
	sent  int64 // bytes that the system has begun to write to the disk
	held  int64 // end of the disk space that is reserved for the file, see reserve
	buf   []byte
	rows  int64
	word  [8]byte // an offset; a field, so that no offset is allocated
	words []byte  // offsets of a block
}

// Gathering. Rows are written up to the last multiple of a piece, and the rest waits for the next rows: the page cache
// then finds large pages, which saves more than copying rows into buf costs. Rows of largeRow bytes or more use the
// smaller piece, so that fewer of their bytes are copied.
const (
	smallPiece = 256 << 10
	largePiece = 1 << 20
	largeRow   = 64 << 10
)

// A scratch file that has leastReserve bytes reserves disk space for as many bytes again, and so on, at most
// mostReserve at a time (see reserve). Other files get their space when the system writes them to the disk, which is in
// large pieces.
const (
	leastReserve = 1 << 20
	mostReserve  = 64 << 20
)

// writeBehind is how many new bytes of a file are gathered in the page cache before the system is told to begin writing
// them to the disk. Little is then left to wait for when the file is complete and synced. Such a file reserves no
// space: ext4 would join the reserved space with space that is being written, and log a warning.
const writeBehind = 8 << 20

func newArrayFile(spec tensor.Spec, in stagedFiles) arrayFile {
	return arrayFile{spec: spec, in: in, sums: NewBlockSums(spec.RecordBytes())}
}

// create begins an empty array and leaves room for the header, which close writes.
func (a *arrayFile) create(name string) (err error) {
	if a.file, err = a.in.Create(name); err != nil {
		return err
	}
	a.at, a.sent, a.held, a.rows, a.sums = 0, 0, 0, 0, BlockSums{Done: a.sums.Done[:0], size: a.sums.size}
	a.buf = append(a.buf[:0], make([]byte, a.frame.head())...)
	return nil
}

// append adds whole rows, whose CRC32C is crc.
func (a *arrayFile) append(b []byte, crc uint32) error {
	a.sums.Add(b, crc)
	return a.gather(b)
}

// gather adds whole rows whose checksums the caller has already entered.
func (a *arrayFile) gather(b []byte) error {
	a.rows += int64(len(b) / a.spec.RecordBytes())
	end := a.at + int64(len(a.buf)+len(b))
	behind := int(end % a.piece())
	if behind >= len(b) {
		a.buf = append(a.buf, b...)
		return nil
	}
	if err := a.write(b[:len(b)-behind]); err != nil {
		return err
	}
	a.buf = append(a.buf, b[len(b)-behind:]...)
	return nil
}

// piece returns how many bytes to gather before a write. Rows of images are large already, and gathering them would
// copy each once more for nothing.
func (a *arrayFile) piece() int64 {
	if a.spec.RecordBytes() >= largeRow {
		return smallPiece
	}
	return largePiece
}

// write writes the gathered bytes and then b.
func (a *arrayFile) write(b []byte) error {
	n := int64(len(a.buf) + len(b))
	if a.in.scratch && a.at+n > a.held && a.at >= leastReserve {
		a.held = reserve(a.file, max(a.at, a.held), min(a.at, mostReserve))
	}
	done, err := writeBoth(a.file, a.buf, b)
	a.at, a.buf = a.at+int64(done), a.buf[:0]
	if a.at-a.sent >= writeBehind && !a.in.scratch {
		startWriting(a.file, a.sent, a.at-a.sent)
		a.sent = a.at
	}
	return err
}

// writeBoth writes head and then tail, with a single system call where the system has a call for two buffers. It
// returns how many bytes were written.
func writeBoth(f *os.File, head, tail []byte) (done int, err error) {
	if len(head) > 0 && len(tail) > 0 {
		done = writeAtOnce(f, head, tail)
	}
	if done < len(head) {
		n, err := f.Write(head[done:])
		if done += n; err != nil {
			return done, err
		}
	}
	if done < len(head)+len(tail) {
		var n int
		n, err = f.Write(tail[done-len(head):])
		done += n
	}
	return done, err
}

// sync writes the gathered rows and waits until all rows are on disk.
func (a *arrayFile) sync() error {
	if err := a.write(nil); err != nil {
		return err
	}
	return a.file.Sync()
}

// close finishes the array and returns the checksums of the file and of its blocks. The checksum of the file is
// combined from the checksums of header, rows and padding, so the file is not read again. blocks is overwritten by
// the next array. A file without rows gets one zero byte after the header, as NumPy cannot map an empty file.
func (a *arrayFile) close() (crc uint32, blocks []uint32, err error) {
	crc = a.sums.all()
	a.sums.End()
	if a.rows == 0 {
		a.buf, crc = append(a.buf, 0), layout.CRC32C([]byte{0})
	}
	if err := a.write(nil); err != nil {
		return 0, nil, err
	}
	header := a.header()
	if _, err := a.file.WriteAt(header, 0); err != nil {
		return 0, nil, err
	}
	rows := a.at - a.frame.head()
	pad := a.frame.padding(rows)
	if a.held > a.at || pad > 0 {
		if err := a.file.Truncate(a.at + pad); err != nil {
			return 0, nil, err
		}
	}
	file := a.file
	a.file = nil
	crc = CombineCRC32C(layout.CRC32C(header), crc, rows)
	return CombineCRC32C(crc, layout.CRC32C(make([]byte, pad)), pad), a.sums.Done, a.in.complete(file)
}

// header returns the bytes before the rows.
func (a *arrayFile) header() []byte {
	if a.frame != nil {
		return a.frame.Index(a.rows)
	}
	return layout.Header(a.spec, a.rows)
}

// resume continues an array whose first rows, with checksum crc, were on disk at a checkpoint. Rows after the
// checkpoint are truncated. The kept rows are read again, which restores the checksums of their blocks. If the
// checksum of all kept rows is not crc, that is an error: new rows after damaged ones would hide the damage.
func (a *arrayFile) resume(name string, rows int64, crc uint32) error {
	path := a.in.Path(name)
	f, err := a.in.Reopen(name)
	if err != nil {
		return err
	}
	a.file, a.rows, a.held, a.buf = f, rows, 0, a.buf[:0]
	size := rows * int64(a.spec.RecordBytes())
	if err := a.reread(size); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if got := a.sums.all(); got != crc {
		return fmt.Errorf("%s: the CRC32C of its first %d rows is %s, not %s: %w", path, rows, layout.HexCRC(got),
			layout.HexCRC(crc), store.ErrCorrupt)
	}
	if err := f.Truncate(a.frame.head() + size); err != nil {
		return err
	}
	a.at, err = f.Seek(0, io.SeekEnd)
	a.sent = a.at
	return err
}

// reread computes the checksums of the rows in the file.
func (a *arrayFile) reread(size int64) error {
	r := io.NewSectionReader(a.file, a.frame.head(), size)
	buf := make([]byte, largePiece)
	for left := size; left > 0; {
		n := min(left, int64(len(buf)))
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return err
		}
		a.sums.Add(buf[:n], layout.CRC32C(buf[:n]))
		left -= n
	}
	return nil
}

// abandon closes the file without writing its header.
func (a *arrayFile) abandon() {
	if a.file != nil {
		a.file.Close()
		a.file = nil
	}
}

// writeSums writes a checksum file and returns the CRC32C of all its bytes. A file without blocks gets one zero byte,
// as NumPy cannot map an empty file.
func writeSums(in stagedFiles, name string, blocks []uint32) (uint32, error) {
	text := layout.SumsHeader(int64(len(blocks)))
	for _, b := range blocks {
		text = binary.LittleEndian.AppendUint32(text, b)
	}
	if len(blocks) == 0 {
		text = append(text, 0)
	}
	return layout.CRC32C(text), in.write(name, text)
}

func (a *arrayFile) appendOffset(rows int64) error {
	binary.LittleEndian.PutUint64(a.word[:], uint64(rows))
	return a.append(a.word[:], layout.CRC32C(a.word[:]))
}
