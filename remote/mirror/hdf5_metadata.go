package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/remote"
)

// booksName is the file that says what of an HDF5 file came when it was opened: the CRC32C of
// all of it, in 8 hex digits, and how many parts it has; then a line for each, with its offset and
// its length. What a later process finds like that it does not fetch.
const booksName = "books"

// maxBooks is more than the file has for what meta takes.
const maxBooks = 1 << 30

// isBooks tells what an HDF5 dataset of penstock has besides its records.
func isBooks(path string) bool { return strings.HasPrefix(path, "/penstock/") }

// bookkeeping makes the file of a mirror, as long as the object, with all of it but the payloads,
// and returns what these are.
func (d *cache) bookkeeping(ctx context.Context, o remote.Object) (*contents, error) {
	state, err := d.files.root.OpenFile(stateName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	lock := locks{state}
	if !lock.wait(lockSetup, 1, setupLimit) {
		return nil, fmt.Errorf("%s: another process has been setting it up for %v", d.files.dir, setupLimit)
	}
	defer lock.free(lockSetup, 1)
	if err := d.files.stretch(hdf5Name, o.Size); err != nil {
		return nil, err
	}
	file, err := d.files.root.OpenFile(hdf5Name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	d.files.hdf5 = file
	if d.hasBooks(file, o.Size) {
		return d.contents(file, o.Size)
	}
	c, err := d.fetchBooks(&remoteReader{d: d, ctx: ctx, o: o, file: file})
	if !isNoRoom(err) || lock.held(lockUsers, maxUsers) {
		return c, err
	}
	// What has the room may be blocks of this mirror, which nobody else has open.
	if err := errors.Join(state.Truncate(0), file.Truncate(0), file.Truncate(o.Size)); err != nil {
		return nil, err
	}
	d.evictor.look()
	return d.fetchBooks(&remoteReader{d: d, ctx: ctx, o: o, file: file})
}

// hasBooks reports whether what an earlier process fetched is there, and is what it was.
func (d *cache) hasBooks(file *os.File, size int64) bool {
	text, err := d.files.readAll(booksName, maxBooks)
	if err != nil {
		return false
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	var books []part
	for line := range strings.Lines(rest) {
		var p part
		if n, err := fmt.Sscanf(line, "%d %d\n", &p.off, &p.n); n != 2 || err != nil || p.off < 0 || p.n <= 0 || p.n > size || p.off > size-p.n {
			return false
		}
		books = append(books, p)
	}
	got, err := sumBooks(file, books)
	return err == nil && got == head
}

// fetchBooks fetches all but the payloads.
func (d *cache) fetchBooks(far *remoteReader) (*contents, error) {
	c, err := d.contents(far, far.o.Size)
	if err != nil {
		return nil, err
	}
	books := c.books(far.have, far.o.Size)
	if err := far.fetch(books); err != nil {
		return nil, err
	}
	d.counts.fetched.Add(total(books))
	sum, err := sumBooks(far.file, books)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintln(&text, sum)
	for _, p := range books {
		fmt.Fprintln(&text, p.off, p.n)
	}
	const temporary = "books.new"
	if err := d.files.root.WriteFile(temporary, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	return c, os.Rename(filepath.Join(d.files.dir, temporary), filepath.Join(d.files.dir, booksName))
}

// sumBooks returns the first line of the file of books.
func sumBooks(file *os.File, books []part) (string, error) {
	crc, buf := uint32(0), make([]byte, bookPiece)
	for _, p := range pieces(books, bookPiece) {
		if _, err := file.ReadAt(buf[:p.n], p.off); err != nil {
			return "", err
		}
		crc = kernel.CRC32C(crc, buf[:p.n])
	}
	return fmt.Sprintf("%08x %d", crc, len(books)), nil
}
