package archive

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/penstock/penstock/cmd/internal/source"
)

// member is a file in an archive.
type member struct {
	name string // with slashes, from the archive's root
	ext  string // what is behind the first dot of its last element, in lower case
	data []byte // nil if it was not read
	err  error  // why it cannot be used

	packed *zip.File // where it is read by load
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

// endReader notes that the bytes came to their end, which the end mark of an archive is
// before: package tar takes the end of a file for the end of the archive.
type endReader struct {
	r       io.Reader
	reached bool
}

// reader returns the Reader for package tar, which can skip if r can.
func (e *endReader) reader() io.Reader {
	if s, ok := e.r.(io.Seeker); ok {
		return struct {
			io.Reader
			io.Seeker
		}{e, s}
	}
	return e
}

// Read implements io.Reader.
func (e *endReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.reached = e.reached || n == 0 && err == io.EOF
	return n, err
}

// memberReader reads the members of an archive.
type memberReader struct {
	tar  *tar.Reader
	want func(ext string) bool
}

// next returns the next file that may be part of a sample. A name that leads out of the
// archive is an error, as the archive may be an attack.
func (r *memberReader) next(ignored *[]string) (m member, key string, err error) {
	for {
		h, err := r.tar.Next()
		if err == io.EOF {
			return m, "", err
		}
		if err != nil {
			return m, "", tarError(err)
		}
		name, err := memberName(h.Name)
		if err != nil {
			return m, "", err
		}
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if m, key = fileMember(name, h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse, ignored); key == "" {
			if h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink {
				(*ignored)[len(*ignored)-1] += " (a link, which tar --dereference --hard-dereference makes a file)"
			}
			continue
		}
		m.err = checkMember(h)
		if m.err == nil && r.want(m.ext) {
			if m.data, err = readMember(r.tar, h.Size); err != nil {
				return m, "", tarError(err)
			}
		}
		return m, key, nil
	}
}

func tarError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the archive is cut short: %w", err)
	}
	if errors.Is(err, tar.ErrHeader) {
		return fmt.Errorf("no tar archive, or corrupt: %w", err)
	}
	return err
}

// checkMember says why a member cannot be read into memory.
func checkMember(h *tar.Header) error {
	sparse := h.Typeflag == tar.TypeGNUSparse
	for key := range h.PAXRecords {
		sparse = sparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	switch {
	case sparse:
		return errors.New("is a sparse file, which can be of any length; archive it with --sparse switched off")
	case h.Size > source.MaxValue:
		return fmt.Errorf("has %d bytes, more than %d", h.Size, source.MaxValue)
	}
	return nil
}

// readMember reads size bytes, as far as there are that many.
func readMember(r io.Reader, size int64) ([]byte, error) {
	b := make([]byte, 0, min(size, 1<<20))
	for int64(len(b)) < size {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := io.ReadFull(r, b[len(b):min(int64(cap(b)), size)])
		b = b[:len(b)+n]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// memberName returns the name from the archive's root on.
func memberName(name string) (string, error) {
	clean := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || len(clean) > 1 && clean[1] == ':' || strings.IndexByte(clean, 0) >= 0 {
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
