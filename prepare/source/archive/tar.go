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

// tarBytes are the bytes of a tar file. They know whether their end was reached, which the end mark of an archive is
// before: package tar takes the end of a file for the end of the archive. A block can be put back.
type tarBytes struct {
	r     io.Reader
	back  []byte
	ended bool
}

// reader returns the Reader for package tar, which can skip if r can.
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

// skipZeros reads the padding after an archive, and reports whether something follows it. To read on to the end makes
// decompression compare its checksum.
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

// memberReader reads the members of the archives in a file: they may follow each other, as cat puts them.
type memberReader struct {
	bytes *tarBytes
	tar   *tar.Reader
	part  int  // number of the archive in the file
	empty bool // nothing was read of it yet
	want  func(ext string) bool
	file  *tarFile // members are read from it by their places; nil if they are read now
}

func newMemberReader(r io.Reader, want func(ext string) bool) *memberReader {
	b := &tarBytes{r: r}
	return &memberReader{bytes: b, tar: tar.NewReader(b.reader()), want: want}
}

// header returns the next header, io.EOF at the end of the file.
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

// wrong says what an error of package tar means.
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

// next returns the next file that may be part of a sample. A name that leads out of the
// archive is an error, as the archive may be an attack.
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
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
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

// read reads a member, or notes where it is.
func (r *memberReader) read(m *member, size int64) (err error) {
	if r.file == nil {
		m.data, err = source.ReadBytes(r.tar, size, io.ErrUnexpectedEOF)
		return err
	}
	at, err := r.bytes.r.(io.Seeker).Seek(0, io.SeekCurrent)
	m.placed = &tarPlace{file: r.file, at: at, bytes: size}
	return err
}

// checkMember says why a member cannot be read into memory.
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
