package archive

import (
	"archive/zip"
	"cmp"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// zipFile is an open zip archive.
type zipFile struct {
	file    vfs.File
	members []*zip.File // sorted by name, the members of a sample together
}

// openZip opens an archive and reads its directory.
func openZip(ctx context.Context, root *vfs.Root, name string) (*zipFile, error) {
	f, err := source.OpenUntil(ctx, root, name)
	if err != nil {
		return nil, err
	}
	z := &zipFile{file: f}
	if err := z.readDirectory(); err != nil {
		f.Close()
		return nil, err
	}
	return z, nil
}

// readDirectory lists the members. The sum of their compressed sizes must fit in the file: an overlapping zip bomb
// stores one compressed block under many names (https://www.bamsoftware.com/hacks/zipbomb/). Besides deflate,
// Zstandard (method 93) and bzip2 (method 12) are decompressed, which current archivers write; the window of
// Zstandard is limited, as a frame may ask for any size.
func (z *zipFile) readDirectory() error {
	info, err := z.file.Stat()
	if err != nil {
		return err
	}
	r, err := zip.NewReader(z.file, info.Size())
	if errors.Is(err, zip.ErrFormat) {
		return errors.New("no zip archive, or cut short: it has no directory at its end")
	}
	if err != nil {
		return err
	}
	r.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(128<<20)))
	r.RegisterDecompressor(12, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	packed := uint64(0)
	for _, m := range r.File {
		if packed += m.CompressedSize64; m.CompressedSize64 > uint64(info.Size()) || packed > uint64(info.Size()) {
			return errors.New("its members have more bytes than the archive: some are stored over others, as in a " +
				"decompression bomb")
		}
	}
	z.members = r.File
	slices.SortStableFunc(z.members, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	// Sorting is stable, so that members of one name stay in the order of the directory.
	z.together()
	return nil
}

// together moves the members of a sample behind its first member. After sorting by name, members of other samples
// can be between: a.d/x.png sorts after a.cls and before a.png.
func (z *zipFile) together() {
	places := make(map[string]int)
	place := make(map[*zip.File]int, len(z.members))
	for i, m := range z.members {
		name, _ := memberName(m.Name) // an error comes when the member's turn does
		key, _ := splitKey(name)
		if _, found := places[key]; !found {
			places[key] = i
		}
		place[m] = places[key]
	}
	slices.SortStableFunc(z.members, func(a, b *zip.File) int { return cmp.Compare(place[a], place[b]) })
}

// groups yields the groups of the archive, and returns whether the caller wants more.
func (z *zipFile) groups(ctx context.Context, name string, want func(ext string) bool, yield func(group, error) bool) (
	more bool, err error) {
	g := group{file: name}
	for n, f := range z.members {
		if n%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		m, key, err := z.member(f, want, &g.ignored)
		if err != nil {
			return false, err
		}
		if key == "" {
			continue
		}
		if len(g.members) > 0 && key != g.key {
			if !yield(g, nil) {
				return false, nil
			}
			g = group{file: name}
		}
		g.key = key
		g.add(m)
	}
	return len(g.members) == 0 || yield(g, nil), nil
}

// member returns the member for a file of the archive. key is "" if the file is no part of a sample. The data is
// not read before load.
func (z *zipFile) member(f *zip.File, want func(ext string) bool, ignored *[]string) (m member, key string, err error) {
	name, err := memberName(f.Name)
	// Some writers mark folders only in the mode, and have no bytes for them.
	if err != nil || strings.HasSuffix(f.Name, "/") || f.Mode().IsDir() && f.UncompressedSize64 == 0 {
		return m, "", err
	}
	if m, key = fileMember(name, f.Mode()&(fs.ModeType&^fs.ModeDir) == 0, ignored); key == "" {
		if f.Mode()&fs.ModeSymlink != 0 {
			(*ignored)[len(*ignored)-1] += " (a link, which zip makes a file where -y is not given)"
		}
		return m, "", nil
	}
	if m.err = checkZipped(f); m.err == nil && want(m.ext) {
		m.packed = &zipMember{f, z.file}
	}
	return m, key, nil
}

// checkZipped returns why a member cannot be read: it is encrypted, too large, or expands like a decompression
// bomb.
func checkZipped(f *zip.File) error {
	const encrypted = 1
	switch {
	case f.Flags&encrypted != 0:
		return errors.New("is encrypted; unzip the archive first")
	case f.UncompressedSize64 > source.MaxValue:
		return fmt.Errorf("has %d bytes, more than %d", f.UncompressedSize64, source.MaxValue)
	}
	// Both sizes are claims of the directory: load notices a member that is longer.
	return source.CheckRatio(int64(f.CompressedSize64), int64(f.UncompressedSize64))
}

// load returns the bytes of a member: the memory that holds them already, which must not be changed, or a new
// slice. For zips it reads to the end, where archive/zip compares the checksum.
func (m member) load() ([]byte, error) {
	if m.placed != nil && m.err == nil {
		return m.placed.load()
	}
	if m.packed == nil || m.err != nil {
		return m.data, m.err
	}
	if err := source.CheckZipName(m.packed.archive, m.packed.File); err != nil {
		return nil, err
	}
	r, err := m.packed.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("is compressed by method %d of zip, which is not read; unzip the archive first",
			m.packed.Method)
	}
	if err != nil {
		return nil, err
	}
	b, err := source.ReadBytes(r, int64(m.packed.UncompressedSize64), io.ErrUnexpectedEOF)
	if err == nil {
		_, err = io.ReadFull(r, make([]byte, 1)) // the end compares the checksum
		if err == nil {
			err = errors.New("is longer than the archive's directory says")
		} else if err == io.EOF {
			err = nil
		}
	}
	return b, cmp.Or(err, r.Close())
}
