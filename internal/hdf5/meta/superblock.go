package meta

import (
	"bytes"
	"io"
	"strings"
)

const signature = "\x89HDF\r\n\x1a\n"

// Superblock holds the facts that apply to the whole file.
type Superblock struct {
	Version    int   // 0 to 3
	Offset     int64 // offset of the superblock in the file
	Base       int64 // offset that addresses are relative to: the size of the user block
	EOF        int64 // end of the HDF5 data as stored, as an offset in the file
	OffsetSize int   // bytes of an address in the file
	LengthSize int   // bytes of a length in the file
	WriteOpen  bool  // marked as open for writing: a writer is at work or died (version 3)

	root      uint64 // address of the root group's object header
	extension uint64 // address of the superblock extension, undef if none
	leafK     uint16 // symbol table nodes hold up to 2*leafK entries
	groupK    uint16 // B-tree nodes of groups hold up to 2*groupK children
	chunkK    uint16 // B-tree nodes of chunks hold up to 2*chunkK children
}

// findSuperblock looks for the signature at offsets 0, 512, 1024, 2048, ..., as the format specifies: a user block of
// another program may come before it.
func findSuperblock(r io.ReaderAt, size int64) (int64, error) {
	var b [len(signature)]byte
	for off := int64(0); off <= size-int64(len(b)); off = max(512, off*2) {
		n, err := r.ReadAt(b[:], off)
		if n < len(b) && err != io.EOF {
			return 0, &Error{What: "signature", Addr: off, Msg: "reading failed", Kind: err}
		}
		if n == len(b) && string(b[:]) == signature {
			return off, nil
		}
	}
	return 0, &Error{What: "file", Msg: beginning(r, size), Kind: ErrNotHDF5}
}

// beginnings are the first bytes of files that users take for HDF5 files, and what to do with such a file.
var beginnings = []struct{ bytes, text string }{
	{"version https://git-lfs", "is a pointer of Git LFS; fetch the file itself: git lfs pull"},
	{"<", "is a web page or XML; download the file itself"},
	{"PK\x03\x04", "is a zip archive; unpack it"},
	{"\x1f\x8b", "is compressed by gzip; unpack it: gunzip"},
	{"\x28\xb5\x2f\xfd", "is compressed by zstd; unpack it: unzstd"},
	{"MATLAB 5.0", "is a MATLAB file before 7.3; save it with -v7.3"},
	{"CDF", "is netCDF 3; convert it: nccopy -k nc4"},
	{"\x0e\x03\x13\x01", "is HDF4; convert it: h4toh5convert"},
}

// beginning describes a file without the signature by its first bytes.
func beginning(r io.ReaderAt, size int64) string {
	b := make([]byte, min(max(size, 0), 32))
	n, err := r.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return "cannot be read: " + err.Error()
	}
	b = b[:n]
	if len(b) == 0 {
		return "is empty"
	}
	for _, known := range beginnings {
		if strings.HasPrefix(string(b), known.bytes) {
			return known.text
		}
	}
	if len(bytes.Trim(b, "\x00")) == 0 {
		return "begins with zeros, as a copy or download that was stopped; fetch it again"
	}
	return "has no HDF5 signature at byte 0, 512, 1024, ..."
}

// readSuperblock parses the superblock and sets base and field sizes of s.
func readSuperblock(s *source, off int64) (Superblock, error) {
	sb := Superblock{Offset: off, extension: undef, leafK: 4, groupK: 16, chunkK: 32}
	s.Base, s.OffSize, s.LenSize = off, 8, 8
	c := s.ReadUpTo(0, 128, "superblock")
	c.Skip(len(signature))
	sb.Version = int(c.Version(0, 3))
	var base uint64
	if sb.Version < 2 {
		base = sb.parseOld(c)
	} else {
		base = sb.parseNew(c)
	}
	if c.Err != nil {
		return sb, c.Err
	}
	s.Note(0, uint64(c.Pos), "superblock")
	return sb, sb.settle(s, c, base)
}

// parseOld reads versions 0 and 1 (II.A). They have the order of the B-trees of groups and, in version 1, of chunks,
// which the nodes themselves do not repeat: without the order, the length of a node is not known. parseOld returns the
// base address, to which all addresses of the file are relative: a user block may come before.
func (sb *Superblock) parseOld(c *cursor) (base uint64) {
	c.Skip(4) // versions of free space and root group, reserved, version of shared messages
	sb.sizes(c)
	c.Skip(1)
	sb.leafK, sb.groupK = c.U16(), c.U16()
	c.Skip(4) // consistency flags, not used in these versions
	if sb.Version == 1 {
		sb.chunkK = c.U16()
		c.Skip(2)
	}
	base = c.Addr()
	c.Addr() // free space
	sb.EOF = int64(c.Addr())
	if driver := c.Addr(); driver != undef {
		c.Unsupported("the file needs a driver (family or multi: data in further files)")
	}
	c.Length() // name of the root group in a heap; libhdf5 stores it as a length
	sb.root = c.Addr()
	c.Skip(4 + 4 + 16)
	return base
}

// parseNew reads versions 2 and 3, which have a checksum. Version 3 marks a file that a program has open for writing
// (SWMR), or did not close.
func (sb *Superblock) parseNew(c *cursor) (base uint64) {
	sb.sizes(c)
	flags := c.U8()
	sb.WriteOpen = sb.Version == 3 && flags&1 != 0
	base = c.Addr()
	sb.extension = c.Addr()
	sb.EOF = int64(c.Addr())
	sb.root = c.Addr()
	c.Checksum()
	return base
}

// sizes reads the sizes of addresses and lengths, and makes c use them from then on.
func (sb *Superblock) sizes(c *cursor) {
	sb.OffsetSize, sb.LengthSize = int(c.U8()), int(c.U8())
	for _, n := range []int{sb.OffsetSize, sb.LengthSize} {
		switch n {
		case 2, 4, 8:
		case 16, 32:
			c.Unsupported("addresses or lengths of %d bytes", n)
		default:
			c.Corrupt("addresses or lengths of %d bytes", n)
		}
	}
	if c.Err == nil {
		c.Src.OffSize, c.Src.LenSize = sb.OffsetSize, sb.LengthSize
	}
}

// settle derives the base address and compares the stored end with the true size. If the superblock is not at its base
// address, because a user block was added later, its place counts, as in libhdf5.
func (sb *Superblock) settle(s *source, c *cursor, base uint64) error {
	if base > uint64(s.Size) || sb.EOF < int64(base) {
		c.Corrupt("base address %d and end of file %d do not fit a file of %d bytes", base, uint64(sb.EOF), s.Size)
		return c.Err
	}
	sb.EOF += sb.Offset - int64(base)
	sb.Base = sb.Offset
	if sb.EOF > s.Size || sb.EOF < sb.Base {
		c.Corrupt("truncated: data ends at byte %d, but the file has %d bytes", sb.EOF, s.Size)
		return c.Err
	}
	if sb.root == undef {
		c.Corrupt("no root group")
	}
	return c.Err
}
