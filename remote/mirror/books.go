package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/penstock/penstock/internal/vec"
	"github.com/penstock/penstock/remote"
)

// booksName is the file that says that the books of an HDF5 file are in the mirror: their
// CRC32C, in 8 hex digits.
const booksName = "books"

// isBooks tells what an HDF5 dataset of penstock has besides its records.
func isBooks(path string) bool { return strings.HasPrefix(path, "/penstock/") }

// bookkeeping makes the file of a mirror, as long as the object, with all of it but the
// payloads. What an earlier process fetched is compared with its checksum.
func (d *Dataset) bookkeeping(ctx context.Context, o remote.Object, payloads []part) error {
	f, err := d.root.OpenFile(stateName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	lock := locks{f}
	if !lock.wait(lockSetup, 1, setupLimit) {
		return fmt.Errorf("%s: another process has been setting it up for %v", d.dir, setupLimit)
	}
	defer lock.free(lockSetup, 1)
	books := without(payloads, o.Size)
	if want, err := d.readAll(booksName, 64); err == nil {
		if got, err := d.sumBooks(books); err == nil && got == string(want) {
			return nil
		}
	}
	if err := d.stretch(hdf5Name, o.Size); err != nil {
		return err
	}
	if err := d.fetchBooks(ctx, o, books); err != nil {
		return err
	}
	sum, err := d.sumBooks(books)
	if err != nil {
		return err
	}
	const temporary = "books.new"
	if err := d.root.WriteFile(temporary, []byte(sum), 0o600); err != nil {
		return err
	}
	return os.Rename(filepath.Join(d.dir, temporary), filepath.Join(d.dir, booksName))
}

// stretch gives a file its length, and leaves what it has: another process may have it mapped.
func (d *Dataset) stretch(name string, size int64) error {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// without returns what of a file lies outside of some parts, in pieces of at most bookPiece.
func without(parts []part, size int64) (rest []part) {
	at := int64(0)
	for _, p := range append(parts[:len(parts):len(parts)], part{size, 0}) {
		for at < p.off {
			n := min(bookPiece, p.off-at)
			rest = append(rest, part{at, n})
			at += n
		}
		at = max(at, p.off+p.n)
	}
	return rest
}

// fetchBooks fetches parts of an object, some at a time.
func (d *Dataset) fetchBooks(ctx context.Context, o remote.Object, parts []part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan part)
	var all sync.WaitGroup
	for range min(d.opts.InFlight, 16, len(parts)) {
		all.Go(func() {
			buf := make([]byte, bookPiece)
			for p := range work {
				if err := d.fetchPart(ctx, o, p, buf); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, p := range parts {
		if ctx.Err() != nil {
			break
		}
		work <- p
	}
	close(work)
	all.Wait()
	return context.Cause(ctx)
}

func (d *Dataset) fetchPart(ctx context.Context, o remote.Object, p part, buf []byte) error {
	if err := d.client.ReadAt(ctx, o, p.off, buf[:p.n]); err != nil {
		return err
	}
	if err := d.keeper.room(d, p.n); err != nil {
		return fmt.Errorf("%s: %w; an HDF5 file needs room for all of it that is not records in one piece", d.opts.CacheDir, err)
	}
	d.counts.fetched.Add(p.n)
	return d.write(hdf5Name, p.off, buf[:p.n])
}

// sumBooks returns the checksum of parts in the mirror.
func (d *Dataset) sumBooks(parts []part) (string, error) {
	f, err := d.root.Open(hdf5Name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	crc, buf := uint32(0), make([]byte, bookPiece)
	for _, p := range parts {
		if _, err := f.ReadAt(buf[:p.n], p.off); err != nil {
			return "", err
		}
		crc = vec.CRC32C(crc, buf[:p.n])
	}
	return fmt.Sprintf("%08x %d", crc, len(parts)), nil
}

// readAhead reads more than it is asked for, and keeps it: metadata is read in many small
// pieces that lie close together.
type readAhead struct {
	r    io.ReaderAt
	size int64
	mu   sync.Mutex
	data map[int64][]byte
}

const (
	aheadPiece  = 256 << 10
	aheadPieces = 256
)

func (r *readAhead) ReadAt(p []byte, off int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) {
		at := off + int64(n)
		if at >= r.size {
			return n, io.EOF
		}
		piece, err := r.piece(at / aheadPiece)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], piece[at%aheadPiece:])
	}
	return n, nil
}

func (r *readAhead) piece(k int64) ([]byte, error) {
	if b := r.data[k]; b != nil {
		return b, nil
	}
	if r.data == nil || len(r.data) >= aheadPieces {
		r.data = make(map[int64][]byte)
	}
	b := make([]byte, min(aheadPiece, r.size-k*aheadPiece))
	if _, err := r.r.ReadAt(b, k*aheadPiece); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r.data[k] = b
	return b, nil
}
