package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock/penstock/prepare/source"
)

// tarBytes is the content of a tar file for package tar, which takes the end of the file for the end of the
// archive. ended says whether the end of the file was reached: in a whole archive, the end mark (two blocks of
// zeros) comes first, so io.EOF of package tar with ended means a truncated archive. A block can be put back for
// the next archive in the file.
type tarBytes struct {
	r     io.Reader
	back  []byte
	ended bool
}

// reader returns the io.Reader for package tar. It is an io.Seeker if the file can skip, so that the data of
// unwanted members is not read.
func (b *tarBytes) reader() io.Reader {
	if s, ok := b.r.(io.Seeker); ok {
		return struct {
			io.Reader
			io.Seeker
		}{b, s} // package tar seeks only after a header, where nothing is put back
	}
	return b
}

// Read implements io.Reader.
func (b *tarBytes) Read(p []byte) (int, error) {
	if len(b.back) > 0 {
		n := copy(p, b.back)
		b.back = b.back[n:]
		return n, nil
	}
	n, err := b.r.Read(p)
	b.ended = b.ended || n == 0 && err == io.EOF
	return n, err
}

// skipZeros reads the zeros after the end mark, and reports whether anything else follows. tar pads archives with
// zeros to a multiple of 10 KiB. For compressed files, reading to the end also makes the decompressor compare its
// checksum.
func (b *tarBytes) skipZeros() (more bool, err error) {
	block := make([]byte, 512)
	for {
		n, err := 0, error(nil)
		for n < len(block) && err == nil {
			var some int
			some, err = b.Read(block[n:])
			n += some
		}
		if slices.ContainsFunc(block[:n], func(c byte) bool { return c != 0 }) {
			b.back = block[:n]
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// memberReader reads the members of all archives in a file. Files made by cat have several archives, one after the
// other.
type memberReader struct {
	bytes *tarBytes
	tar   *tar.Reader
	part  int  // number of the archive in the file, from 0 on
	empty bool // a new archive was begun and no header was read yet
	want  func(ext string) bool
	file  *tarFile // where members are read from later; nil to read them now
}

// newMemberReader returns a reader of the members in r. The data of members for whose extension want returns false
// is skipped.
func newMemberReader(r io.Reader, want func(ext string) bool) *memberReader {
	b := &tarBytes{r: r}
	return &memberReader{bytes: b, tar: tar.NewReader(b.reader()), want: want}
}

// header returns the next header in any of the archives, io.EOF at the end of the file.
func (r *memberReader) header() (*tar.Header, error) {
	for {
		h, err := r.tar.Next()
		if err == nil {
			r.empty = false
			return h, nil
		}
		if err != io.EOF {
			return nil, r.wrong(err)
		}
		// The end mark comes before the end of the file, so package tar has not seen one.
		if r.bytes.ended {
			return nil, errors.New("the archive is cut short: it has no end mark")
		}
		more, err := r.bytes.skipZeros()
		if err != nil {
			return nil, err
		}
		if !more {
			return nil, io.EOF
		}
		r.part, r.empty, r.tar = r.part+1, true, tar.NewReader(r.bytes.reader())
	}
}

// wrong rewords an error of package tar: it has one error for several causes, which the position in the file tells
// apart.
func (r *memberReader) wrong(err error) error {
	switch {
	case r.empty && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader)):
		return errors.New("the data after the end mark of the archive is neither zeros nor another archive; if it is " +
			"not part of the data, cut it off")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the archive is cut short: %w", err)
	case errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("no tar archive, or corrupt: %w", err)
	}
	return err
}

// next returns the next member that may be part of a sample, and its key. Names of other files are added to
// ignored.
func (r *memberReader) next(ignored *[]string) (m member, key string, err error) {
	for {
		h, err := r.header()
		if err != nil {
			return m, "", err
		}
		name, err := memberName(h.Name)
		if err != nil {
			return m, "", err
		}
		// Folders and the headers that git archive writes are no members, and are not counted as ignored.
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		// Sparse files and hard links count as members, so that checkMember can say what is wrong with them.
		regular := h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse || h.Typeflag == tar.TypeLink
		if m, key = fileMember(name, regular, ignored); key == "" {
			if h.Typeflag == tar.TypeSymlink {
				(*ignored)[len(*ignored)-1] += " (a link, which tar --dereference makes a file)"
			}
			continue
		}
		m.err = checkMember(h)
		if m.err == nil && r.want(m.ext) {
			if err := r.read(&m, h.Size); err != nil {
				return m, "", r.wrong(err)
			}
		}
		return m, key, nil
	}
}

// read reads the data of a member, or notes its place if r.file is set. The reader is then positioned at the data,
// as package tar reads whole blocks of 512 bytes and nothing ahead.
func (r *memberReader) read(m *member, size int64) (err error) {
	if r.file == nil {
		m.data, err = source.ReadBytes(r.tar, size, io.ErrUnexpectedEOF)
		return err
	}
	at, err := r.bytes.r.(io.Seeker).Seek(0, io.SeekCurrent)
	m.placed = &tarPlace{file: r.file, at: at, bytes: size}
	return err
}

// checkMember returns why a member's data cannot be used. A sparse member is refused because it can expand to any
// size, and a hard link because its data is in another member.
func checkMember(h *tar.Header) error {
	sparse := h.Typeflag == tar.TypeGNUSparse
	for key := range h.PAXRecords {
		sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	switch {
	case h.Typeflag == tar.TypeLink: // tar writes it for a file with two names, so it is one of the samples
		return fmt.Errorf("is a hard link to %s; make the archive again with tar --hard-dereference", source.Clip(h.Linkname))
	case sparse:
		return errors.New("is a sparse file, which can be of any length; archive it with --sparse switched off")
	case h.Size > source.MaxValue:
		return fmt.Errorf("has %d bytes, more than %d", h.Size, source.MaxValue)
	}
	return nil
}
