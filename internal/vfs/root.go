package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Root opens the files of one source, and no others. A source may be a stranger's: a folder that was downloaded, an
// archive that was unpacked. What it holds becomes a dataset, which may be published, so a path in a table or a link in
// the folder must not lead to a file that only the user can read, and a named pipe must not stop the program.
//
// The root is the folder that the user named, or the folder of the file that the user named. Links in the name itself
// are followed, as the user typed them: the root is where they lead. From there on:
//
//   - A path is in the root, or it is refused with [ErrOutside]. Whether it is spelled relative, absolute or with ..
//     makes no difference.
//   - A link is followed as long as it stays in the root. This is decided by the system while it opens the file
//     ([os.Root], openat2 on Linux), so a file that is exchanged for a link after it was listed is refused as well.
//   - A file is a regular file, as the open descriptor says. A named pipe, socket, device or folder in its place is
//     [ErrNotRegular]. No open waits for another process.
//   - What is read as a whole has a limit of size, which the reader names.
//
// The cache of the Hugging Face Hub keeps files as links: datasets--x/snapshots/REV/a.csv leads to
// datasets--x/blobs/HASH. The root of a source in such a snapshot is the folder of the repository, datasets--x.
//
// With outside, what --outside and Outside in Go and Python ask for, the first two rules are off: paths and links may
// lead anywhere. The others stay. Buckets have no links; only the first rule is for them.
//
// A Root may be used by any number of goroutines until Close.
type Root struct {
	path     string          // of the named folder, clean
	named    map[string]bool // files that the user named, whose links are followed
	outside  bool
	mounted  bool
	siblings func() string // of a source in a bucket: the folder whose files it may read, "" for none but its own

	// The folder that is held open, which is above the named folder in a cache of the Hub. All are unset with outside
	// and in buckets.
	folder *os.Root
	dir    *os.File // the same, for openat2; nil where the system lacks it
	real   string   // path of it, without links
	abs    []string // absolute paths that lead to it: as it was named, and without links
	below  string   // name in it of the named folder, "" for itself

	closing sync.Once
	failed  error
}

// ErrOutside is the error of paths and links that lead out of a Root.
var ErrOutside = errors.New("it is outside of the source's folder; " +
	"if you trust the source, prepare it with --outside, in Python preprocess(outside=True)")

// OpenRoot opens the folder of a source. named are files that the user named, so that links of these are followed.
func OpenRoot(folder string, outside bool, named ...string) (*Root, error) {
	r := &Root{path: filepath.Clean(folder), named: make(map[string]bool, len(named)), outside: outside,
		mounted: Mounted(folder)}
	for _, path := range named {
		r.named[path] = true
	}
	if r.outside || r.mounted {
		return r, nil
	}
	abs, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, err
	}
	r.abs = []string{abs, real}
	if repository, below := ofHub(real); repository != "" {
		r.abs, r.below, real = []string{repository}, below, repository
		if above, ok := strings.CutSuffix(abs, string(filepath.Separator)+below); ok {
			r.abs = append(r.abs, above)
		}
	}
	// With the separator, a named pipe that stands there now is not opened.
	if r.folder, err = os.OpenRoot(real + string(filepath.Separator)); err != nil {
		return nil, err
	}
	r.real = real
	r.dir = beneath(r.folder)
	return r, nil
}

// OpenMounted is OpenRoot for a source in a bucket, which may be a folder or a file. Whether it is a file, whose
// siblings in a folder it may read, is asked for only if a path does not exist in the source: the answer takes
// requests.
func OpenMounted(path, folder string, outside bool) *Root {
	return &Root{path: filepath.Clean(path), outside: outside, mounted: true, siblings: sync.OnceValue(func() string {
		if info, err := Stat(path); err != nil || info.IsDir() {
			return ""
		}
		return folder
	})}
}

// ofHub returns the folder of the repository that a folder in the cache of the Hugging Face Hub is a snapshot of, or
// part of one, and the name of the folder in it: .../datasets--x/snapshots/REV/train. It returns "" for other folders.
func ofHub(folder string) (repository, below string) {
	parts := strings.Split(folder, string(filepath.Separator))
	for i := len(parts) - 3; i >= 0; i-- {
		kind, _, ok := strings.Cut(parts[i], "--")
		if !ok || parts[i+1] != "snapshots" || !slices.Contains([]string{"datasets", "models", "spaces"}, kind) {
			continue
		}
		repository = strings.Join(parts[:i+1], string(filepath.Separator))
		if info, err := os.Lstat(filepath.Join(repository, "blobs")); err == nil && info.IsDir() {
			return repository, filepath.Join(parts[i+1:]...)
		}
	}
	return "", ""
}

// Close lets go of the folder.
func (r *Root) Close() error {
	r.closing.Do(func() {
		if r.dir != nil {
			r.failed = r.dir.Close()
		}
		if r.folder != nil {
			r.failed = errors.Join(r.failed, r.folder.Close())
		}
	})
	return r.failed
}

// Path returns the named folder.
func (r *Root) Path() string { return r.path }

// Inside reports whether a path is in the root, wherever links lead.
func (r *Root) Inside(path string) bool {
	_, err := r.name("", path)
	return err == nil
}

// name returns the name of a path in the open folder, "" for a path that is opened as it is.
func (r *Root) name(op, path string) (string, error) {
	if r.outside || r.named[path] {
		return "", nil
	}
	if r.mounted {
		if isBelow(r.path, path) {
			return "", nil
		}
		if r.siblings != nil {
			if folder := r.siblings(); folder != "" && isBelow(folder, path) {
				return "", nil
			}
		}
		return "", &fs.PathError{Op: op, Path: path, Err: ErrOutside}
	}
	if rest, ok := strings.CutPrefix(path, r.path); ok && len(rest) > 1 && rest[0] == filepath.Separator &&
		filepath.IsLocal(rest[1:]) {
		return filepath.Join(r.below, rest[1:]), nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for _, base := range r.abs {
		if rel, err := filepath.Rel(base, abs); err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", &fs.PathError{Op: op, Path: path, Err: ErrOutside}
}

// isBelow reports whether a path is in a folder or is it. It compares names only; links are resolved by the caller.
func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, filepath.Clean(path))
	return err == nil && filepath.IsLocal(rel)
}

// in calls do with the name of a path in the open folder, or asIs if the path is opened as it is. A link that do
// refuses may be absolute and yet lead into the folder: then in calls do with the name that the link leads to.
func in[T any](r *Root, op, path string, asIs func(path string) (T, error), do func(name string) (T, error)) (
	T, error) {
	var none T
	name, err := r.name(op, path)
	if err != nil {
		return none, err
	}
	if name == "" {
		return asIs(path)
	}
	fail := func(err error) (T, error) { return none, &fs.PathError{Op: op, Path: path, Err: bare(err)} }
	got, err := do(name)
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, fs.ErrNotExist):
		return fail(err)
	}
	leads, failed := r.leads(name)
	switch {
	case failed != nil:
		return fail(failed)
	case leads == "":
		return fail(fmt.Errorf("link %q: %w", filepath.ToSlash(r.link(name)), ErrOutside))
	case leads == name:
		return fail(err)
	}
	if got, err = do(leads); err != nil {
		return fail(err)
	}
	return got, nil
}

// bare returns an error without the operation and path that package os adds.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// leads returns the name, in the open folder, of the file that a name leads to; "" if the file is outside.
func (r *Root) leads(name string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(r.real, name))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.real, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil
	}
	return rel, nil
}

// link returns the first part of a name that is a link out of the folder, by its name in the source.
func (r *Root) link(name string) string {
	for i := range name + "/" {
		if i < len(name) && name[i] != filepath.Separator {
			continue
		}
		if leads, err := r.leads(name[:i]); err == nil && leads == "" {
			name = name[:i]
			break
		}
	}
	if rel, err := filepath.Rel(r.below, name); err == nil && r.below != "" {
		return rel
	}
	return name
}

// open opens what is at a path, without waiting.
func (r *Root) open(path string, flags int) (*os.File, error) {
	return in(r, "open", path, func(path string) (*os.File, error) { return os.OpenFile(path, flags, 0) },
		func(name string) (*os.File, error) {
			if r.dir != nil {
				fd, err := openBeneath(r.dir, name, flags)
				if err == nil {
					return os.NewFile(uintptr(fd), path), nil
				}
				if !errors.Is(err, errAgain) {
					return nil, err
				}
			}
			return r.folder.OpenFile(name, flags, 0)
		})
}

// Open opens a regular file for reading.
func (r *Root) Open(path string) (File, error) {
	if r.mounted {
		if _, err := r.name("open", path); err != nil {
			return nil, err
		}
		return Open(path)
	}
	f, err := r.open(path, openFile)
	if err != nil {
		return nil, err
	}
	if err := regular(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.Name() != path {
		return called{f, path}, nil
	}
	return f, nil
}

// called is a file that was opened by another name.
type called struct {
	File
	path string
}

// Name returns the path by which the file is known.
func (f called) Name() string { return f.path }

// ReadFile appends the content of a regular file of at most that many bytes to buf.
func (r *Root) ReadFile(path string, buf []byte, most int64) ([]byte, error) {
	if r.mounted {
		_, err := r.name("open", path)
		if err != nil {
			return buf, err
		}
		data, err := ReadFile(path, buf)
		if got := int64(len(data) - len(buf)); err == nil && got > most {
			return buf, tooLarge(got, most)
		}
		return data, err
	}
	f, size, err := r.openPlain(path)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	return readWhole(f, buf, size, most)
}

// ReadNamed returns the content of a regular file that a user named, of at most that many bytes, wherever links lead.
// It does not wait. Its error does not name the path.
func ReadNamed(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	text, err := ReadWhole(f, most)
	return text, bare(err)
}

// ReadWhole returns the content of an open file of at most that many bytes.
func ReadWhole(f fs.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return readWhole(f, nil, info.Size(), most)
}

// readWhole appends what is in a file, which is said to have size bytes, to buf.
func readWhole(f io.Reader, buf []byte, size, most int64) ([]byte, error) {
	if size > most {
		return buf, tooLarge(size, most)
	}
	begin := len(buf)
	buf = slices.Grow(buf, int(size))
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, 512)
		}
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch got := int64(len(buf) - begin); {
		case got > most:
			return buf[:begin], tooLarge(got, most)
		case err == io.EOF || size > 0 && got == size:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// ErrTooLarge is the error of a file that has more bytes than its reader takes.
var ErrTooLarge = errors.New("is too large")

func tooLarge(size, most int64) error {
	return fmt.Errorf("%w: it has %d bytes, more than %d", ErrTooLarge, size, most)
}

// Stat describes what a path leads to.
func (r *Root) Stat(path string) (fs.FileInfo, error) {
	return in(r, "stat", path, Stat, func(name string) (fs.FileInfo, error) { return r.folder.Stat(name) })
}

// EachEntry is the function of that name for a folder in the root.
func (r *Root) EachEntry(path string, f func([]fs.DirEntry) error) error {
	if r.mounted {
		if _, err := r.name("open", path); err != nil {
			return err
		}
		return EachEntry(path, f)
	}
	d, err := r.open(path, openFolder)
	if err != nil {
		return err
	}
	return eachEntry(d, f)
}

// ReadDir lists a folder, by name.
func (r *Root) ReadDir(path string) (list []fs.DirEntry, err error) {
	err = r.EachEntry(path, func(some []fs.DirEntry) error {
		list = append(list, some...)
		return nil
	})
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// FirstEntries returns up to n entries of a folder, in no order; of a folder in a bucket, all entries.
func (r *Root) FirstEntries(path string, n int) ([]fs.DirEntry, error) {
	if r.mounted {
		return r.ReadDir(path)
	}
	d, err := r.open(path, openFolder)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(n)
}

// WalkDir calls f for a file, or for a folder and all below it, as filepath.WalkDir. A link at path itself is followed.
func (r *Root) WalkDir(path string, f fs.WalkDirFunc) error {
	info, err := r.Stat(path)
	if err != nil {
		err = f(path, nil, err)
	} else {
		err = r.walk(path, fs.FileInfoToDirEntry(info), f)
	}
	if err == fs.SkipDir || err == fs.SkipAll {
		return nil
	}
	return err
}

// walk is filepath.WalkDir's walk with the Root's ReadDir, so that no entry outside of the Root is listed. It follows
// filepath's rules for SkipDir exactly, as callers return it.
func (r *Root) walk(path string, e fs.DirEntry, f fs.WalkDirFunc) error {
	if err := f(path, e, nil); err != nil || !e.IsDir() {
		if err == fs.SkipDir && e.IsDir() {
			err = nil
		}
		return err
	}
	list, err := r.ReadDir(path)
	if err != nil {
		if err = f(path, e, err); err != nil {
			if err == fs.SkipDir {
				err = nil
			}
			return err
		}
	}
	for _, e := range list {
		if err := r.walk(filepath.Join(path, e.Name()), e, f); err != nil {
			if err == fs.SkipDir {
				break
			}
			return err
		}
	}
	return nil
}

// Glob returns the paths below a folder that match a pattern, by name. Folders that cannot be listed have no matches.
func (r *Root) Glob(folder, pattern string) []string {
	found := []string{filepath.Clean(folder)}
	for part := range strings.SplitSeq(filepath.ToSlash(pattern), "/") {
		var next []string
		for _, dir := range found {
			next = append(next, matching(dir, part, r.exists, r.EachEntry)...)
		}
		found = next
	}
	return found
}

// exists reports whether there is something at a path, or may be: the error is found when it is opened.
func (r *Root) exists(path string) bool {
	_, err := r.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
