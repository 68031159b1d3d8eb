package bucketfs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/penstock/penstock/remote"
)

// MostListed is how many objects List remembers; a million takes about 250 MB.
const MostListed = 1 << 20

// Errors of List.
var (
	ErrTooMany = errors.New("too many objects to remember")        // more than MostListed
	ErrOther   = errors.New("it is a file, an array or a dataset") // which is opened without a list
)

// arrayFiles are the names of files in the folder of an array or a group of Zarr 2. They sort before all other names, so
// the first page of a listing has them. The file of Zarr 3, arrayFile, sorts last, so it is asked for by name.
var arrayFiles = []string{".zarray", ".zgroup", ".zmetadata"}

const arrayFile = "zarr.json"

// List lists a folder and all below it, so that later calls need no request for names and sizes: they answer with the
// current state. A read of an object that was replaced since is an error. A name that is an object, and a folder that
// has one of the files, are ErrOther; later calls know the object of a name with an extension, too.
//
// A page has a thousand objects, and says where the next page begins. So List asks for the folders of a large folder,
// too, and then for several parts of it at a time. Objects that are in one folder are listed one page after the other:
// where a page in the middle would begin is not known.
//
// While the rest is listed, it reads the first object whose name satisfies first, which the caller needs next; nil is
// for none.
func (f *FS) List(name string, first func(name string) bool, files ...string) error {
	if err := check("list", name); err != nil {
		return err
	}
	if path.Ext(name) != "" { // most that have one are objects: do not ask for what is in it
		if o, err := f.stat(name); !errors.Is(err, fs.ErrNotExist) {
			if err == nil {
				f.listed.Store(&snapshot{root: name, object: &info{name: path.Base(name), size: o.Size, tag: o.ETag}})
			}
			return failed("list", name, ErrOther)
		}
	}
	l := f.newLister(name)
	l.first = first
	s, err := l.list(append(files, arrayFile))
	if err != nil {
		return failed("list", name, err)
	}
	f.listed.Store(s)
	return nil
}

// isObject reports whether a name is, or may be, an object: opening such an object tells what is wrong.
func (f *FS) isObject(name string) bool {
	_, err := f.stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// stat asks for the object of a name.
func (f *FS) stat(name string) (remote.Object, error) {
	key := f.key(name)
	if key == "" {
		return remote.Object{}, fs.ErrNotExist
	}
	return f.client.Stat(f.ctx, key)
}

// lister lists a folder and all below it.
type lister struct {
	fsys   *FS
	name   string
	prefix string
	first  func(name string) bool
	ctx    context.Context
	cancel context.CancelCauseFunc
	jobs   sync.WaitGroup
	looked atomic.Int64  // folders that were listed one by one
	slots  chan struct{} // holds a value for each job that runs

	mu    sync.Mutex
	found *snapshot
	count int
}

// mostListing is how many requests for names are under way at a time.
const mostListing = 32

func (f *FS) newLister(name string) *lister {
	l := &lister{fsys: f, name: name, prefix: f.folder(name), slots: make(chan struct{}, mostListing),
		found: &snapshot{root: name, folders: make(map[string][]fs.DirEntry)}}
	l.ctx, l.cancel = context.WithCancelCause(f.ctx)
	return l
}

// start runs a job. The first error ends all jobs.
func (l *lister) start(job func() error) {
	l.jobs.Go(func() {
		l.slots <- struct{}{}
		defer func() { <-l.slots }()
		if l.ctx.Err() != nil {
			return
		}
		if err := job(); err != nil {
			l.cancel(err)
		}
	})
}

// wait waits for all jobs.
func (l *lister) wait() error {
	l.jobs.Wait()
	return context.Cause(l.ctx)
}

// lookAround finds out, in the time of one request, whether the folder is an object or has one of the files, what is
// on the first page of all below it, and what is in it.
func (l *lister) lookAround(files []string) (page []remote.Object, complete bool, folders []string, err error) {
	l.start(func() error {
		if l.fsys.isObject(l.name) {
			return ErrOther
		}
		return nil
	})
	for _, file := range files {
		l.start(func() error {
			if _, err := l.fsys.client.Stat(l.ctx, l.prefix+file); err == nil {
				return ErrOther
			}
			return nil
		})
	}
	l.start(func() (err error) {
		page, complete, err = l.firstPage()
		return err
	})
	l.start(func() (err error) {
		folders, err = l.listFolder(l.prefix)
		return err
	})
	return page, complete, folders, l.wait()
}

// readFirst begins to read the first small object of a page that first is true of.
func (l *lister) readFirst(page []remote.Object) {
	for _, o := range page {
		if inner := strings.TrimPrefix(o.Key, l.prefix); l.first != nil && fs.ValidPath(inner) && l.first(path.Base(inner)) {
			if o.Size <= maxFirst && o.ETag != "" {
				l.fsys.wholes.begin(remote.Object{Key: o.Key, Size: o.Size, ETag: o.ETag})
			}
			return
		}
	}
}

// maxFirst is the size of an object that is read although it may not be needed.
const maxFirst = 4 << 20

// firstPage returns the first objects, and whether there are no more.
func (l *lister) firstPage() (objects []remote.Object, all bool, err error) {
	for page, err := range l.fsys.client.ListPages(l.ctx, l.prefix, "") {
		if err != nil || len(page.Objects) > 0 || page.Next == nil {
			return page.Objects, page.Next == nil, err
		}
	}
	return nil, true, nil
}

// few is how many folders are listed one by one, to see which folders are in them, and mostLooked how many folders of a
// source are. All other folders are listed with everything below, by prefixes of their names.
const (
	few        = 16
	mostLooked = 64
)

// list returns the entries of the folder, or ErrOther if the folder has one of the files.
func (l *lister) list(files []string) (*snapshot, error) {
	defer l.cancel(nil)
	page, complete, folders, err := l.lookAround(files)
	if err == nil && !complete {
		l.readFirst(page)
		l.spread(l.prefix, folders, page)
		err = l.wait()
	}
	switch {
	case errors.Is(err, remote.ErrPermission), errors.Is(err, remote.ErrInvalid):
		// Some stores and rules of access let one ask for a whole folder only.
		return l.fsys.newLister(l.name).listInOrder()
	case err != nil:
		return nil, err
	case complete:
		l = l.fsys.newLister(l.name)
		defer l.cancel(nil)
		if err := l.add(page); err != nil {
			return nil, err
		}
	}
	return l.sorted()
}

// listInOrder lists one page after the other.
func (l *lister) listInOrder() (*snapshot, error) {
	defer l.cancel(nil)
	for page, err := range l.fsys.client.ListPages(l.ctx, l.prefix, "") {
		if err == nil {
			err = l.add(page.Objects)
		}
		if err != nil {
			return nil, err
		}
	}
	return l.sorted()
}

// sorted returns the listing. A bucket has no empty folders, so a folder without an object does not exist.
func (l *lister) sorted() (*snapshot, error) {
	if len(l.found.folders) == 0 {
		return nil, fs.ErrNotExist
	}
	l.found.sort()
	return l.found, nil
}

// listFolder adds the objects in a folder, and returns the folders in it.
func (l *lister) listFolder(prefix string) (folders []string, err error) {
	for page, err := range l.fsys.client.ListPages(l.ctx, prefix, "/") {
		if err != nil {
			return nil, err
		}
		for _, o := range page.Objects {
			if o.Folder && strings.Count(o.Key[len(prefix):], "/") == 1 {
				folders = append(folders, o.Key)
			}
		}
		if err := l.add(page.Objects); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// spread lists the folders in a folder, several at a time. The page says how full they are.
func (l *lister) spread(prefix string, folders []string, page []remote.Object) {
	if len(folders) == 0 {
		return
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	if len(folders) <= few && l.looked.Add(int64(len(folders))) <= mostLooked {
		for _, folder := range folders {
			l.start(func() error {
				inner, err := l.listFolder(folder)
				l.spread(folder, inner, page)
				return err
			})
		}
		return
	}
	most := max(1, len(folders)/(2*mostListing), onPage(page, strings.Count(prefix, "/")+1))
	for _, start := range starts(folders, most) {
		l.start(func() error { return l.listStart(prefix, start) })
	}
}

// listStart adds the objects of those subfolders whose names begin with start.
func (l *lister) listStart(prefix, start string) error {
	for page, err := range l.fsys.client.ListPages(l.ctx, start, "") {
		if err != nil {
			return err
		}
		inside := slices.DeleteFunc(page.Objects, func(o remote.Object) bool { // the others are known
			return !strings.Contains(o.Key[len(prefix):], "/")
		})
		if err := l.add(inside); err != nil {
			return err
		}
	}
	return nil
}

// onPage returns how many folders of that depth have all their objects on a page.
func onPage(page []remote.Object, depth int) int {
	n, last := 0, ""
	for _, o := range page {
		parts := strings.SplitAfterN(o.Key, "/", depth+1)
		if len(parts) <= depth {
			continue
		}
		if folder := strings.Join(parts[:depth], ""); folder != last {
			n, last = n+1, folder
		}
	}
	return n - 1
}

// starts returns prefixes of the names of folders, each for at most most folders. The prefixes are sorted, and
// no prefix begins with another.
func starts(folders []string, most int) (list []string) {
	first, last := folders[0], folders[len(folders)-1]
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	for n > 0 && n < len(first) && !utf8.RuneStart(first[n]) {
		n--
	}
	next := func(folder string) string {
		_, size := utf8.DecodeRuneInString(folder[n:])
		return folder[n : n+size]
	}
	if len(folders) <= most || next(first) == next(last) {
		return []string{first[:n]}
	}
	for len(folders) > 0 {
		start := next(folders[0])
		end := slices.IndexFunc(folders, func(f string) bool { return next(f) != start })
		if end < 0 {
			end = len(folders)
		}
		list = append(list, starts(folders[:end], most)...)
		folders = folders[end:]
	}
	return list
}

// add adds objects.
func (l *lister) add(objects []remote.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range objects {
		inner := strings.TrimPrefix(o.Key, l.prefix)
		if slices.Contains(arrayFiles, inner) {
			return ErrOther
		}
		if o.Folder || !fs.ValidPath(inner) || inner == "." {
			continue // the mark of an empty folder, or a key that is not a path
		}
		if l.count++; l.count > MostListed {
			return ErrTooMany
		}
		l.found.add(path.Join(l.name, inner), info{name: path.Base(inner), size: o.Size, tag: o.ETag})
	}
	return nil
}
