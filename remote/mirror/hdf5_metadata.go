package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/sys/private"
	"github.com/penstock/penstock/remote"
)

// maxMetadata bounds the file metadataName. Files that package meta accepts stay below it.
const maxMetadata = 1 << 30

// bookkeeping makes the mirror's file, as long as the object, with everything but the payloads, and
// returns how the payloads are fetched. No other process sets the mirror up meanwhile.
func (op *opener) bookkeeping(ctx context.Context, o remote.Object) (c *contents, err error) {
	err = op.cache.files.alone(func(lock locks) error {
		c, err = op.keepBooks(ctx, o, lock)
		return err
	})
	return c, err
}

// keepBooks makes the mirror's copy of an HDF5 file, sparse and of the full size, and fetches its metadata into it,
// unless an earlier process did. If the disk has no room, blocks of this very mirror may take it: they are dropped
// once, but only if no other process reads them.
func (op *opener) keepBooks(ctx context.Context, o remote.Object, lock locks) (*contents, error) {
	if err := op.cache.files.stretch(hdf5Name, o.Size); err != nil {
		return nil, err
	}
	file, err := op.cache.files.root.OpenFile(hdf5Name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	op.cache.files.hdf5 = file
	if op.hasMetadata(file, o.Size) {
		return op.contents(file, o.Size)
	}
	c, err := op.fetchMetadata(&remoteReader{d: op.cache, ctx: ctx, o: o, file: file})
	if !isNoRoom(err) || lock.held(lockUsers, maxUsers) {
		return c, err
	}
	// Blocks of this mirror may take the room; nobody else has it open.
	if err := errors.Join(lock.file.Truncate(0), file.Truncate(0), file.Truncate(o.Size)); err != nil {
		return nil, err
	}
	op.cache.evictor.look()
	return op.fetchMetadata(&remoteReader{d: op.cache, ctx: ctx, o: o, file: file})
}

// hasMetadata reports whether the parts that an earlier process fetched are present and unchanged.
func (op *opener) hasMetadata(file *os.File, size int64) bool {
	text, err := op.cache.files.readAll(metadataName, maxMetadata)
	if err != nil {
		return false
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	var list []part
	for line := range strings.Lines(rest) {
		var p part
		if n, err := fmt.Sscanf(line, "%d %d\n", &p.off, &p.n); n != 2 || err != nil || p.off < 0 || p.n <= 0 || p.n > size ||
			p.off > size-p.n {
			return false
		}
		list = append(list, p)
	}
	got, err := sumMetadata(file, list)
	return err == nil && got == head
}

// fetchMetadata fetches all but the payloads.
func (op *opener) fetchMetadata(far *remoteReader) (*contents, error) {
	c, err := op.contents(far, far.o.Size)
	if err != nil {
		return nil, err
	}
	list := c.metadata(far.have, far.o.Size)
	if err := far.fetch(list); err != nil {
		return nil, err
	}
	op.cache.counts.fetched.Add(total(list))
	sum, err := sumMetadata(far.file, list)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintln(&text, sum)
	for _, p := range list {
		fmt.Fprintln(&text, p.off, p.n)
	}
	return c, private.Replace(op.cache.files.root, metadataName, 0o600, []byte(text.String()))
}

// sumMetadata returns the first line of the file metadataName.
func sumMetadata(file *os.File, list []part) (string, error) {
	crc, buf := uint32(0), make([]byte, metadataPiece)
	for _, p := range pieces(list, metadataPiece) {
		if _, err := file.ReadAt(buf[:p.n], p.off); err != nil {
			return "", err
		}
		crc = kernel.CRC32C(crc, buf[:p.n])
	}
	return fmt.Sprintf("%08x %d", crc, len(list)), nil
}
