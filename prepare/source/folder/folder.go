// Package folder reads folders of images, as torchvision's ImageFolder does: one folder a class, folders of splits that
// hold folders of classes, or images alone.
//
// [Open] lists the tree and sorts it; a [Folder] then gives samples in any order, and reads files only for their
// values. The listing is what grows: it keeps the folders once and names without them. A file is judged by its content
// where its name promises nothing, and what is ignored is counted and reported.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"sync"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Folder is a folder of images: either one folder a class, with images in it and below it, or images alone. Order and
// classes are the same as in torchvision.datasets.ImageFolder: classes are the sorted names of the subfolders; samples
// are sorted by class, then by the path of their folder, then by name.
//
// If all subfolders have the names of splits (train, val, test), they are splits, and each is a folder of images of
// that kind. The classes are the classes of all splits, sorted by name.
//
// Without any image, NumPy's .npy files are the samples: a record each. The content of a file shows whether it is an
// image. Hidden files and folders are skipped. A file whose name promises no image and whose content is none is
// ignored, and counted. A file whose name promises an image is a sample, whatever it holds.
type Folder struct {
	ctx      context.Context
	root     *vfs.Root
	dir      string
	isImage  func(head []byte) bool
	seen     func(n int64)
	reported int64 // to seen
	info     source.Info
	classes  []string
	folders  []folder // in the order of their samples
	alone    bool     // other data is left out, as was asked for
	left     leftOut
	arrays   bool // NumPy arrays are the samples, as there are no images
	hasArray bool // there is one

	heads heads

	held    map[string][]entry // samples by folder, from the first listing until index; nil if they are not to be held
	once    sync.Once          // for Sample
	indexed []indexedFolder
	failed  error
}

// indexedFolder is a folder with its samples.
type indexedFolder struct {
	folder
	first int64 // place of its first sample
	files []entry
}

// folder is one folder with samples.
type folder struct {
	rel   string // inside the root, "" for the root itself
	label int64
	split string // "" if there are none
}

// name returns the name of a sample in the folder.
func (f folder) name(e entry) string {
	if f.rel == "" {
		return e.name
	}
	return filepath.ToSlash(f.rel) + "/" + e.name
}

var _ source.Named = (*Folder)(nil)

// Options configures OpenImageFolder.
type Options struct {
	// IsImage reports from a file's first bytes (up to 16) whether it is an image; nil takes
	// names for it.
	IsImage func(head []byte) bool

	// Alone takes the images, and leaves out tables, arrays and files that have the name of an image, such as a.txt
	// next to a.jpg; without it, these are an error.
	Alone bool

	// Hold has names held in memory from the first listing on, for calls of Sample.
	Hold bool

	// Seen is called now and then with the number of images found, once listing takes long.
	// It may be nil.
	Seen func(n int64)
}

// fewHeads is how many files next to an image of their name are read first: one that is not an image is an error.
const fewHeads = 32

// Open lists the folder once, to count it and to check it. Errors are: no such
// folder, no images, a class without images, images next to class folders, a link that
// leads back into its own folder. Samples lists it again, one folder at a time. At the end of
// ctx, its cause is the error.
func Open(ctx context.Context, root *vfs.Root, path string, opts Options) (*Folder, error) {
	s := &Folder{ctx: ctx, root: root, dir: path, isImage: opts.IsImage, seen: opts.Seen, alone: opts.Alone}
	if opts.Hold {
		s.held = make(map[string][]entry)
	}
	if s.seen == nil {
		s.seen = func(int64) {}
	}
	if s.isImage == nil {
		s.isImage = func([]byte) bool { return false }
	}
	if err := Check(path); err != nil {
		return nil, err
	}
	few := fewHeads
	if s.alone {
		few = math.MaxInt
	}
	s.heads = readHeads(ctx, root, path, few, s.isImage)
	err := s.scan(ctx)
	if s.info.Count == 0 && s.hasArray {
		s.arrays, s.classes, s.folders, s.left = true, nil, nil, leftOut{}
		err = s.scan(ctx)
		s.info.Unit = "arrays"
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return s, nil
}

// Check returns an error unless path is a folder.
func Check(path string) error {
	info, err := vfs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("source %s: there is no such folder", path)
	case err != nil:
		return fmt.Errorf("source %s: %w", path, source.WithoutPath(err))
	case !info.IsDir():
		return fmt.Errorf("source %s: is a file, not a folder of images; give the folder, and unpack an archive first", path)
	}
	return nil
}

// scan fills info and folders.
func (s *Folder) scan(ctx context.Context) error {
	name, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	s.info = source.Info{Kind: "imagefolder", Name: filepath.Base(name), Unit: "images",
		Fields: []source.Field{source.ContentField(source.ImagesName, tensor.Image)}}
	top, err := s.list("")
	if err != nil {
		return err
	}
	s.ignore("", top)
	switch {
	case len(top.files) > 0 && len(top.folders) > 0:
		return s.beside("", top)
	case len(top.folders) == 0:
		s.folders = []folder{{}}
		s.info.Count = int64(len(top.files))
	case !slices.ContainsFunc(top.folders, func(name string) bool { return !source.IsSplit(name) }):
		err = s.scanSplits(ctx, top.folders)
	default:
		if err = halfSplits(top.folders); err == nil {
			err = s.scanClasses(ctx, top.folders)
		}
	}
	if err == nil && s.info.Count == 0 {
		return errors.New("holds no images" + s.ignoredText())
	}
	if err == nil && !s.alone {
		err = s.left.err(s.dir, s.info.Unit)
	}
	return err
}

// ignoredText says which files there are instead of images, and what to give instead of the folder.
func (s *Folder) ignoredText() string {
	first := s.info.Ignored.First
	if s.info.Ignored.Count == 0 {
		return "; it is empty"
	}
	text := fmt.Sprintf("; it holds %d other files, such as %s", s.info.Ignored.Count, first)
	if s.info.Ignored.Count == 1 {
		text = "; it holds one other file, " + first
	}
	path := filepath.Join(s.dir, filepath.FromSlash(first))
	if dir := filepath.Dir(path); dir != filepath.Clean(s.dir) && source.DetectFolder(s.root, dir) != "imagefolder" {
		return text + fmt.Sprintf("; %s is a source of kind %s: give that", dir, source.DetectFolder(s.root, dir))
	}
	if kind := source.DetectFile(s.root, path); kind != "" {
		return text + fmt.Sprintf(", which is a source of kind %s: give that", kind)
	}
	if what := source.ForeignFile(s.root, path); what != "" {
		return text + ", which " + what
	}
	return text
}

// scanClasses looks through every class folder.
func (s *Folder) scanClasses(ctx context.Context, classes []string) error {
	filled, nested := make(map[string]bool), true
	for label, class := range classes {
		before := s.info.Count
		direct, err := s.scanClass(ctx, int64(label), "", class)
		if err != nil {
			return err
		}
		filled[class] = s.info.Count > before
		nested = nested && !direct
	}
	if err := s.setClasses(classes, filled); err != nil {
		return err
	}
	if s.info.Count > 0 && nested {
		s.info.Hints = append(s.info.Hints, fmt.Sprintf(
			"the classes are %s, and all their images are in folders further down; if those are the classes, give %s "+
				"as the source",
			source.Enumerate(classes, 5), filepath.Join(s.dir, classes[0])))
	}
	return nil
}

// scanClass adds the folders of a class that hold samples, sorted by path. It reports
// whether the class folder itself holds any.
func (s *Folder) scanClass(ctx context.Context, label int64, split, class string) (direct bool, err error) {
	w, top := walker{ctx: ctx, source: s}, filepath.Join(split, class)
	if err := w.walk(top); err != nil {
		return false, err
	}
	for _, rel := range w.sorted() {
		s.folders = append(s.folders, folder{rel, label, split})
		direct = direct || rel == top
	}
	return direct, nil
}

// ignore counts the files of a folder that are not samples.
func (s *Folder) ignore(rel string, l listing) {
	for _, name := range l.ignored {
		s.info.Ignored.Add(slashed(rel, name))
	}
	s.left.add(s.root, s.dir, rel, l)
}

// slashed is the name of a file inside the source.
func slashed(rel, name string) string {
	return filepath.ToSlash(filepath.Join(rel, name))
}

// Info implements Source.
func (s *Folder) Info() source.Info { return s.info }

// Close implements Source.
func (s *Folder) Close() error { return s.root.Close() }

// Samples implements Source.
func (s *Folder) Samples() iter.Seq2[source.Sample, error] {
	return func(yield func(source.Sample, error) bool) {
		for _, f := range s.folders {
			l, err := s.list(f.rel)
			if err != nil {
				yield(source.Sample{}, fmt.Errorf("source %s: %w", s.dir, err))
				return
			}
			for _, e := range l.files {
				if !yield(s.sample(f, e), nil) {
					return
				}
			}
		}
	}
}

// Sample implements Indexed. From its first call on all names are held in memory.
func (s *Folder) Sample(i int64) (source.Sample, error) {
	f, e, err := s.entry(i)
	if err != nil {
		return source.Sample{}, err
	}
	return s.sample(f, e), nil
}

// SampleName implements source.Named.
func (s *Folder) SampleName(i int64) (string, error) {
	f, e, err := s.entry(i)
	if err != nil {
		return "", err
	}
	return f.name(e), nil
}

// entry returns the sample at a position, and its folder.
func (s *Folder) entry(i int64) (folder, entry, error) {
	s.once.Do(s.index)
	if s.failed != nil {
		return folder{}, entry{}, s.failed
	}
	at, found := slices.BinarySearchFunc(s.indexed, i, func(f indexedFolder, i int64) int { return int(f.first - i) })
	if !found {
		at--
	}
	f := &s.indexed[at]
	return f.folder, f.files[i-f.first], nil
}

func (s *Folder) sample(f folder, e entry) source.Sample {
	return source.Sample{Name: f.name(e), Split: f.split, Data: s.data(f, e)}
}

// index lists all folders.
func (s *Folder) index() {
	first := int64(0)
	for _, f := range s.folders {
		files, held := s.held[f.rel]
		if !held {
			l, err := s.list(f.rel)
			if err != nil {
				s.failed = fmt.Errorf("source %s: %w", s.dir, err)
				return
			}
			files = l.files
		}
		s.indexed = append(s.indexed, indexedFolder{f, first, files})
		first += int64(len(files))
	}
	s.held = nil
	if first != s.info.Count {
		s.failed = fmt.Errorf("source %s: holds %d images, and held %d a moment ago", s.dir, first, s.info.Count)
	}
}

// data returns the values of an entry.
func (s *Folder) data(f folder, e entry) (d source.Data) {
	switch {
	case e.mode != 0:
		d = source.Failed{Err: vfs.NotRegular(e.mode)}
	default:
		d = source.File{Root: s.root, Path: filepath.Join(s.dir, f.rel, e.name)}
	}
	if s.classes == nil {
		return d
	}
	return labeled{d, f.label}
}

// labeled is a file with a class number as the second value.
type labeled struct {
	file  source.Data
	label int64
}

// Read implements Data.
func (l labeled) Read(v *source.Values) error {
	source.PutInt(v, 1, l.label)
	return l.file.Read(v)
}

// ReadField implements source.Parted: the folder gives the class.
func (l labeled) ReadField(v *source.Values, field int) bool {
	if field == 1 {
		source.PutInt(v, 1, l.label)
	}
	return field == 1
}
