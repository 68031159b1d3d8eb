package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/store"
)

// ImageFolder is a folder of images: either one folder a class, with images in it and below
// it, or images alone. Order and classes are those of torchvision.datasets.ImageFolder:
// classes are the sorted names of the subfolders; samples are sorted by class, then by the
// path of their folder, then by name.
//
// Where all subfolders are called as splits are (train, val, test), they are splits, and each
// is a folder of images of that kind. Classes are those of all, by name.
//
// The content of a file shows whether it is an image. Hidden files and folders are skipped. A file
// whose name promises no image and whose content is none is ignored, and counted. A file
// whose name promises an image is a sample, whatever it holds.
type ImageFolder struct {
	root    string
	fence   fence
	isImage func(head []byte) bool
	seen    func(n int64)
	told    int64 // to seen
	info    Info
	classes []string
	folders []folder // in the order of their samples
	table   string   // one that lies beside the images, "" for none

	once    sync.Once // for Sample
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

// ImageFolderOptions configures OpenImageFolder.
type ImageFolderOptions struct {
	// IsImage tells from a file's first bytes (up to 16) whether it is an image; nil takes
	// names for it.
	IsImage func(head []byte) bool

	// Outside allows links that lead out of the folder.
	Outside bool

	// Seen is called now and then with the number of images found, once listing takes long.
	// It may be nil.
	Seen func(n int64)
}

// worthTelling is how many samples can be looked at in a moment.
const worthTelling = 50_000

// OpenImageFolder lists the folder once, to count it and to check it. Errors are: no such
// folder, no images, a class without images, images beside class folders, a link that
// leads back into its own folder. Samples lists it again, one folder at a time. At the end of
// ctx, its cause is the error.
func OpenImageFolder(ctx context.Context, path string, opts ImageFolderOptions) (*ImageFolder, error) {
	s := &ImageFolder{root: path, isImage: opts.IsImage, seen: opts.Seen, fence: fence{path, opts.Outside}}
	if s.seen == nil {
		s.seen = func(int64) {}
	}
	if s.isImage == nil {
		s.isImage = func([]byte) bool { return false }
	}
	if err := CheckFolder(path); err != nil {
		return nil, err
	}
	if err := s.scan(ctx); err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	return s, nil
}

// CheckFolder returns an error unless path is a folder.
func CheckFolder(path string) error {
	info, err := vfs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("source %s: there is no such folder", path)
	case err != nil:
		return fmt.Errorf("source %s: %w", path, withoutPath(err))
	case !info.IsDir():
		return fmt.Errorf("source %s: is a file, not a folder of images; give the folder, and unpack an archive first", path)
	}
	return nil
}

// scan fills info and folders.
func (s *ImageFolder) scan(ctx context.Context) error {
	name, err := filepath.Abs(s.root)
	if err != nil {
		return err
	}
	s.info = Info{Kind: "imagefolder", Name: filepath.Base(name), Unit: "images", Fields: []Field{content(imagesField, store.Image)}}
	top, err := s.list("")
	if err != nil {
		return err
	}
	s.ignore("", top.ignored)
	switch {
	case len(top.files) > 0 && len(top.folders) > 0:
		return s.beside("", top)
	case len(top.folders) == 0:
		s.folders = []folder{{}}
		s.info.Count = int64(len(top.files))
	case !slices.ContainsFunc(top.folders, func(name string) bool { return !isSplit(name) }):
		err = s.scanSplits(ctx, top.folders)
	default:
		err = s.scanClasses(ctx, top.folders)
	}
	if err == nil && s.info.Count == 0 {
		return errors.New("holds no images" + s.ignoredText())
	}
	if s.table != "" {
		s.info.Hints = append(s.info.Hints, fmt.Sprintf("%s is not read; if it names the images, with their labels or texts, give %s as the source", s.table, filepath.Join(s.root, filepath.FromSlash(s.table))))
	}
	return err
}

// ignoredText says what is there instead of images, and what to give instead of the folder.
func (s *ImageFolder) ignoredText() string {
	first := s.info.Ignored.First
	if s.info.Ignored.Count == 0 {
		return "; it is empty"
	}
	text := fmt.Sprintf("; it holds %d other files, such as %s", s.info.Ignored.Count, first)
	if s.info.Ignored.Count == 1 {
		text = "; it holds one other file, " + first
	}
	path := filepath.Join(s.root, filepath.FromSlash(first))
	if dir := filepath.Dir(path); dir != filepath.Clean(s.root) && detectFolder(dir) != "imagefolder" {
		return text + fmt.Sprintf("; %s is a source of kind %s: give that", dir, detectFolder(dir))
	}
	if kind := detectFile(path); kind != "" {
		return text + fmt.Sprintf(", which is a source of kind %s: give that, or several such files by a glob", kind)
	}
	if what := foreignFile(path); what != "" {
		return text + ", which " + what
	}
	return text
}

// scanClasses looks through every class folder.
func (s *ImageFolder) scanClasses(ctx context.Context, classes []string) error {
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
			"the classes are %s, and all their images lie in folders further down; if those are the classes, give %s as the source",
			enumerate(classes, 5), filepath.Join(s.root, classes[0])))
	}
	return nil
}

// scanClass adds the folders of a class that hold samples, sorted by path. It reports
// whether the class folder itself holds any.
func (s *ImageFolder) scanClass(ctx context.Context, label int64, split, class string) (direct bool, err error) {
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

// enumerate joins up to limit names.
func enumerate(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// ignore counts files that are no samples. A table among them may be what the images are
// labelled by.
func (s *ImageFolder) ignore(rel string, names []string) {
	for _, name := range names {
		if kind := byExtension[strings.ToLower(filepath.Ext(name))]; s.table == "" && (kind == "csv" || kind == "jsonl") {
			s.table = slashed(rel, name)
		}
	}
	if len(names) > 0 && s.info.Ignored.Count == 0 {
		s.info.Ignored.First = slashed(rel, names[0])
	}
	s.info.Ignored.Count += int64(len(names))
}

// slashed is the name of a file inside the source.
func slashed(rel, name string) string {
	return filepath.ToSlash(filepath.Join(rel, name))
}

// Info implements Source.
func (s *ImageFolder) Info() Info { return s.info }

// Close implements Source.
func (s *ImageFolder) Close() error { return nil }

// Samples implements Source.
func (s *ImageFolder) Samples() iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for _, f := range s.folders {
			l, err := s.list(f.rel)
			if err != nil {
				yield(Sample{}, fmt.Errorf("source %s: %w", s.root, err))
				return
			}
			for _, e := range l.files {
				if !yield(Sample{Name: slashed(f.rel, e.name), Split: f.split, Data: s.data(e, f.label)}, nil) {
					return
				}
			}
		}
	}
}

// Sample implements Indexed. From its first call on all names are held in memory.
func (s *ImageFolder) Sample(i int64) (Sample, error) {
	s.once.Do(s.index)
	if s.failed != nil {
		return Sample{}, s.failed
	}
	at, found := slices.BinarySearchFunc(s.indexed, i, func(f indexedFolder, i int64) int { return int(f.first - i) })
	if !found {
		at--
	}
	f := s.indexed[at]
	e := f.files[i-f.first]
	return Sample{Name: slashed(f.rel, e.name), Split: f.split, Data: s.data(e, f.label)}, nil
}

// index lists all folders.
func (s *ImageFolder) index() {
	first := int64(0)
	for _, f := range s.folders {
		l, err := s.list(f.rel)
		if err != nil {
			s.failed = fmt.Errorf("source %s: %w", s.root, err)
			return
		}
		s.indexed = append(s.indexed, indexedFolder{f, first, l.files})
		first += int64(len(l.files))
	}
	if first != s.info.Count {
		s.failed = fmt.Errorf("source %s: holds %d images, and held %d a moment ago", s.root, first, s.info.Count)
	}
}

// data returns the values of an entry.
func (s *ImageFolder) data(e entry, label int64) Data {
	if s.classes == nil {
		return e.data
	}
	return labelled{e.data, label}
}

// labelled is a file with a class number as the second value.
type labelled struct {
	file  Data
	label int64
}

// Read implements Data.
func (l labelled) Read(v *Values) error {
	putInt(v, 1, l.label)
	return l.file.Read(v)
}
