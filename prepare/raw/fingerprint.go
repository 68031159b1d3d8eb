package raw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// ErrUnknown marks a source whose changes cannot be noticed, as it is not known which files it reads, or which
// version of them.
var ErrUnknown = errors.New("its changes could not be noticed")

// recipe and pixelRecipe name the way from samples to records, as files and with transforms. They change when the
// same samples become different records, which makes all caches out of date.
const (
	recipe      = "keep-encoded 2"
	pixelRecipe = "pixels 2"
)

// Key is a digest of everything that a record depends on: names, sizes and times of its files, and the values that
// are not in files. Equal keys mean equal bytes of the record, except in fields that follow from names.
type Key [16]byte

// Fingerprint is the state of a source. It differs after a file was changed, added or removed. Files are not read
// for it, as reading them would take as long as an epoch.
type Fingerprint struct {
	Digest string // of names, sizes and times of all files, and of the fields
	Bytes  int64  // of the files, or of the pixels that they become
	Names  int64  // bytes of the names of all records of a folder of images
	Keys   []Key  // by record; nil if the files of a record are unknown or keys are not worth it
}

// stamps is a digest of files that is being computed, and what they add up to.
type stamps struct {
	hash.Hash
	bytes  int64
	names  int64     // bytes of the names of records
	newest time.Time // latest time of a file
	line   []byte    // memory of the last entry
	sum    []byte    // memory of the last key
}

// key returns a key of all entries since the last key.
func (h *stamps) key() Key {
	h.sum = h.Sum(h.sum[:0])
	h.Reset()
	return Key(h.sum[:16])
}

// tick is longer than the resolution of file times: two changes within a tick may leave the same time.
const tick = 20 * time.Millisecond

// Fingerprint looks at all files. If one was changed within the last tick, it waits and looks again: a change right
// after the look could leave the same time, and would never be noticed.
func (s *Source) Fingerprint(ctx context.Context) (*Fingerprint, error) {
	for {
		f, newest, err := s.fingerprint(ctx)
		if age := time.Since(newest); err != nil || age < 0 || age > tick {
			return f, err
		}
		time.Sleep(tick)
	}
}

// fingerprint enters all files by name, size and times, and returns the latest time. A source that may name files
// anywhere has no fingerprint, as nobody knows which files to look at.
//
//	folder of images              a key for each file: its name, size and times
//	table that names files        a key for each row: of these files, and of its other values
//	archives and other files      a key for each record: of its file, and of its number in the file
//	small records                 no keys: the whole source is one digest
func (s *Source) fingerprint(ctx context.Context) (f *Fingerprint, newest time.Time, err error) {
	l, h := &s.records, &stamps{Hash: sha256.New()}
	// Files outside of the source may be anywhere, and a folder of them may change in ways that no stamp covers.
	if l.outside {
		return nil, newest, fmt.Errorf("source %s: it may name files anywhere: %w", s.Name(), ErrUnknown)
	}
	id, err := l.identity("", "")
	if err != nil {
		return nil, newest, err
	}
	f = new(Fingerprint)
	if s.head == nil {
		fmt.Fprintf(h, "%s %s\n", recipe, id)
	} else {
		fmt.Fprintf(h, "%s %s %s\n", pixelRecipe, s.head.recipe, id)
	}
	if l.info.Kind == "imagefolder" {
		f.Keys, err = l.stampSamples(ctx, h)
	} else {
		f.Keys, err = l.stampFiles(ctx, h)
	}
	if err != nil {
		return nil, newest, s.place.buckets.Explain(fmt.Errorf("source %s: %w", l.path, err))
	}
	f.Digest, f.Bytes = hex.EncodeToString(h.Sum(nil)[:8]), h.bytes
	f.Names = h.names
	if s.head != nil {
		f.Bytes = l.listing.len() * int64(s.head.stored.RecordBytes())
	}
	return f, h.newest, nil
}

// stamp enters a file. A file in a bucket is entered with the version that the store reports, such as an ETag.
func stamp(h *stamps, name string, info fs.FileInfo) error {
	h.bytes += info.Size()
	if version, ok := info.Sys().(vfs.Version); ok {
		if version == "" {
			return fmt.Errorf("%s: the server does not say which version of the file it has: %w", name, ErrUnknown)
		}
		fmt.Fprintf(h, "%q %d %q\n", name, info.Size(), version)
		return nil
	}
	h.enterFile(name, timesOf(info))
	return nil
}

// enterFile enters a local file. Besides the time of modification, which programs can set (cp -p, tar), the time of
// change counts: it shows that another file of the same size has taken the place and the time of modification of a
// file.
func (h *stamps) enterFile(name string, t times) {
	h.newest = later(h.newest, time.Unix(0, max(t.modified, t.changed)))
	h.line = append(appendQuoted(h.line[:0], name), ' ')
	h.line = append(strconv.AppendInt(h.line, t.size, 10), ' ')
	h.line = append(strconv.AppendInt(h.line, t.modified, 10), ' ')
	h.line = append(strconv.AppendInt(h.line, t.changed, 10), '\n')
	h.Write(h.line)
}

// appendQuoted is strconv.AppendQuote with a short way for plain names: quoting would take a third of the time of
// the digest.
func appendQuoted(line []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(line, name)
		}
	}
	return append(append(append(line, '"'), name...), '"')
}

// eachRecord calls f with the sample of each record.
func (l *records) eachRecord(ctx context.Context, f func(source.Sample) error) error {
	for i := range l.listing.len() {
		if i%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sample, err := l.at(i)
		if err == nil {
			err = f(sample)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stamped is the number of samples that a goroutine looks up before it takes more samples. Several goroutines work
// at a time, as network file systems answer several requests at a time.
const stamped = 4096

// stampSamples enters the file of each sample of a folder of images, following links. The pieces have digests of
// their own, so that the result does not depend on the order of goroutines.
func (l *records) stampSamples(ctx context.Context, h *stamps) ([]Key, error) {
	keys := make([]Key, l.listing.len())
	pieces := make([]stamps, (len(keys)+stamped-1)/stamped)
	errs := make([]error, len(pieces))
	source.Overlap(ctx, len(pieces), func(i int) {
		first := i * stamped
		pieces[i].Hash = sha256.New()
		errs[i] = l.stampPiece(&pieces[i], first, keys[first:min(first+stamped, len(keys))])
	})
	for _, p := range pieces {
		h.bytes, h.names, h.newest = h.bytes+p.bytes, h.names+p.names, later(h.newest, p.newest)
	}
	// The digest is over the keys in the order of records, whatever goroutine made them.
	for _, key := range keys {
		h.Write(key[:])
	}
	return keys, cmp.Or(cmp.Or(errs...), context.Cause(ctx))
}

// stampPiece computes the keys of the records from number first on.
func (l *records) stampPiece(h *stamps, first int, keys []Key) error {
	files, mounted := statter{root: l.path}, vfs.Mounted(l.path)
	defer files.close()
	for i := range keys {
		name, err := nameAt(l, int64(first+i))
		if err != nil {
			return err
		}
		if mounted {
			err = stampMounted(h, filepath.Join(l.path, filepath.FromSlash(name)), name)
		} else {
			var t times
			if t, err = files.stat(name); err == nil {
				h.bytes += t.size
				h.enterFile(name, t)
			}
		}
		if errors.Is(err, ErrUnknown) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", shell.Line(name), source.WithoutPath(err))
		}
		h.names += int64(len(name))
		keys[i] = h.key()
	}
	return nil
}

// stampMounted enters a file of a bucket.
func stampMounted(h *stamps, path, name string) error {
	info, err := vfs.Stat(path)
	if err != nil {
		return err
	}
	return stamp(h, name, info)
}

// stampFiles enters the files of the source, and the files that rows of a table name. For a table in a bucket,
// these are all files in the table's folder, as that takes one listing and not a request for each file.
func (l *records) stampFiles(ctx context.Context, h *stamps) ([]Key, error) {
	files, err := source.Files(l.path)
	if err != nil {
		return nil, err
	}
	named := slices.Contains([]string{"csv", "jsonl", "coco"}, l.info.Kind) &&
		slices.ContainsFunc(l.info.Fields, func(f source.Field) bool { return f.IsBytes() })
	rows := named && l.info.Kind != "coco" && !vfs.Mounted(l.path)
	for _, file := range files {
		if info, err := vfs.Stat(file); named && !rows && err == nil && !info.IsDir() {
			file = filepath.Dir(file)
		}
		if err := stampTree(ctx, h, file, filepath.Dir(l.path)); err != nil {
			return nil, err
		}
	}
	if rows {
		return l.stampNamed(ctx, h)
	}
	return l.stampParts(h)
}

// leastKeyed is the least average size of a record in bytes for which keys are made.
const leastKeyed = 256

// stampParts computes the keys of records that are parts of files, such as members of archives: while a file is
// unchanged, so are its records. Small records get no keys, as they are faster to read again than to look up.
func (l *records) stampParts(h *stamps) ([]Key, error) {
	if l.filed == nil || h.bytes < leastKeyed*l.listing.len() {
		return nil, nil
	}
	files, counts := l.filed.Files()
	part, samples := &stamps{Hash: sha256.New()}, make([]Key, 0, l.listing.len())
	for i, file := range files {
		info, err := vfs.Stat(file)
		if err != nil {
			return nil, source.WithoutPath(err)
		}
		name, err := filepath.Rel(filepath.Dir(l.path), file)
		if err != nil {
			name = file
		}
		if err := stamp(part, filepath.ToSlash(name), info); err != nil {
			return nil, err
		}
		// A record is known by its file and its number in the file.
		of := part.key()
		for n := range counts[i] {
			part.Write(binary.LittleEndian.AppendUint64(of[:len(of):len(of)], uint64(n)))
			samples = append(samples, part.key())
		}
	}
	h.newest = later(h.newest, part.newest)
	// The counts are the counts of the files when they were opened. Unless each record has a key, no key is of use.
	if int64(len(samples)) != l.listing.len() {
		return nil, nil
	}
	keys := samples
	if l.order != nil {
		keys = make([]Key, len(samples))
		for i, sample := range l.order {
			keys[i] = samples[sample]
		}
	}
	for _, key := range keys {
		h.Write(key[:])
	}
	return keys, nil
}

// stampNamed enters the files that the rows of a table name. The key of a row also covers its values that are not
// files.
func (l *records) stampNamed(ctx context.Context, h *stamps) ([]Key, error) {
	var scratch source.Values
	keys, row := make([]Key, 0, l.listing.len()), &stamps{Hash: sha256.New()}
	err := l.eachRecord(ctx, func(s source.Sample) error {
		if err := row.enter(s, &scratch); err != nil {
			return err
		}
		key := row.key()
		h.Write(key[:])
		keys = append(keys, key)
		return nil
	})
	h.bytes, h.newest = h.bytes+row.bytes, later(h.newest, row.newest)
	return keys, err
}

// enter enters the files that a row names, and its other values. A row that cannot be parsed is skipped: the stamp
// of the table itself covers it.
func (h *stamps) enter(s source.Sample, scratch *source.Values) error {
	row, ok := s.Data.(source.Naming)
	if !ok {
		return nil
	}
	files, rest, err := row.Files(scratch)
	if err != nil {
		return nil
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			fmt.Fprintf(h, "%q cannot be read\n", file)
		} else if err := stamp(h, file, info); err != nil {
			return err
		}
	}
	h.Write(rest)
	return nil
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// stampTree enters a file, or all files below a folder. The names of files in a bucket are relative to base, as
// each process mounts a bucket at a path of its own.
func stampTree(ctx context.Context, h *stamps, root, base string) error {
	return vfs.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := statEntry(path, e)
		if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
			return nil
		}
		if err != nil {
			return err
		}
		// WalkDir does not follow links, so the files behind one would not be stamped.
		if info.IsDir() && path != root {
			return fmt.Errorf("%s is a link to a folder: %w", path, ErrUnknown)
		}
		if vfs.Mounted(path) {
			if path, err = filepath.Rel(base, path); err != nil {
				return err
			}
		}
		return stamp(h, path, info)
	})
}

// statEntry returns the size and times of the file that a path leads to. In a bucket, the listing has them already.
func statEntry(path string, e fs.DirEntry) (fs.FileInfo, error) {
	if vfs.Mounted(path) {
		return e.Info()
	}
	return os.Stat(path)
}
