// Package folder reads folders of images as torchvision's ImageFolder does: a folder for each class, folders of
// splits with class folders in them, or images alone.
//
// [Open] lists the tree once, to count images, find classes and refuse folders that were probably not meant. A
// [Folder] keeps only the paths of folders from that; Samples lists each folder again when its turn comes, so
// memory does not grow with the number of images. Random access (Sample) has to hold all names, about one string
// for each image.
//
// The name of a file decides whether it is an image, and for other names the first bytes do. Nothing is left out
// silently: ignored files are counted and reported, and data that looks like labels of the images is an error
// (leftOut).
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

// Folder is a folder of images: a folder for each class, with images in it or below it, or images alone. Order and
// classes are as in torchvision.datasets.ImageFolder: classes are the sorted names of the subfolders, and samples
// are sorted by class, then by the path of their folder, then by name.
//
// If all subfolders have names of splits (train, val, test), each subfolder is such a folder of images. Their
// classes together are the classes of the source.
//
// If there is no image at all, NumPy's .npy files are the samples, each of them one record. Hidden files and
// folders are skipped. A file with an image extension is a sample whatever it contains, so that a broken image is
// reported. Any other file is a sample if its content is an image, and ignored otherwise.
type Folder struct {
	ctx      context.Context
	root     *vfs.Root
	dir      string
	isImage  func(head []byte) bool
	seen     func(n int64)
	reported int64 // images that were reported to seen
	info     source.Info
	classes  []string
	folders  []folder // folders with samples, in the order of their samples
	alone    bool     // other data is left out, as the user asked
	left     leftOut
	arrays   bool // the samples are .npy files, as there are no images
	hasArray bool // some file is a .npy file

	heads heads

	// Samples by folder, from the first listing until index takes them; nil if names are not held.
	held    map[string][]entry
	once    sync.Once // runs index at the first random access
	indexed []indexedFolder
	failed  error // of index
}

// indexedFolder is a folder with the names of its samples.
type indexedFolder struct {
	folder
	first int64 // position of its first sample
	files []entry
}

// folder is a folder that has samples.
type folder struct {
	rel   string // path in the source, "" for the source itself
	label int64
	split string // "" if the source has no splits
}

// name returns the sample name of a file in the folder: its path in the source, with slashes.
func (f folder) name(e entry) string {
	if f.rel == "" {
		return e.name
	}
	return filepath.ToSlash(f.rel) + "/" + e.name
}

var _ source.Named = (*Folder)(nil)

// Options configures Open.
type Options struct {
	// IsImage reports whether a file is an image, from its first bytes (up to 16); nil means to decide by names.
	IsImage func(head []byte) bool

	// Alone takes the images and leaves out tables, arrays and files with the name of an image, such as a.txt next
	// to a.jpg. Without it, such files are an error.
	Alone bool

	// Hold keeps the names of the first listing in memory, for calls of Sample.
	Hold bool

	// Seen is called now and then with the number of images found since the last call, once listing takes long. It
	// may be nil.
	Seen func(n int64)
}

// fewHeads is the number of files named like an image next to them that are read first. One that is no image is an
// error of the folder, so the rest need not be read.
const fewHeads = 32

// Open lists the folder once, to count images and to check the layout. It is an error if the folder does not exist
// or has no images, if a class has no images, if images are next to class folders, or if a link leads back into its
// own folder. After the end of ctx, the error is its cause.
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
	// With Alone, a file named like an image next to it is no error, so each such file has to be looked at.
	if s.alone {
		few = math.MaxInt
	}
	s.heads = readHeads(ctx, root, path, few, s.isImage)
	err := s.scan(ctx)
	// The second scan takes arrays for samples. Only a scan of all folders can tell that there is no image.
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

// scan lists the tree and fills in info, classes and folders.
//
//	photos/cat/1.jpg          classes
//	photos/train/cat/1.jpg    splits of classes, if all folders have names of splits
//	photos/train/1.jpg        splits of images without classes
//	photos/1.jpg              images without classes
//	photos/1.jpg, photos/cat/2.jpg   an error: 1.jpg would have no class
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

// ignoredText describes the files in a folder without images, and says which of these files could be the source.
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

// scanClasses lists every class folder, and adds a hint if all images are deeper down: the classes are then
// probably the wrong level.
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

// scanClass adds the folders with samples at and below a class folder, sorted by path. direct reports whether the
// class folder itself has samples.
func (s *Folder) scanClass(ctx context.Context, label int64, split, class string) (direct bool, err error) {
	// Images of a class may be in folders below its own, as in ImageFolder.
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

// ignore counts the files of a folder that are not samples, and looks for data among them.
func (s *Folder) ignore(rel string, l listing) {
	for _, name := range l.ignored {
		s.info.Ignored.Add(slashed(rel, name))
	}
	s.left.add(s.root, s.dir, rel, l)
}

// slashed returns the path of a file in the source, with slashes.
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

// Sample implements Indexed. The first call lists all folders, and all names stay in memory.
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

// entry returns the file of sample i and its folder. It finds the folder by binary search.
func (s *Folder) entry(i int64) (folder, entry, error) {
	s.once.Do(s.index)
	if s.failed != nil {
		return folder{}, entry{}, s.failed
	}
	// Without an exact match, the search returns where i would be inserted, which is after its folder.
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

// index lists all folders and holds their names. A number of images that differs from the first listing is an
// error: positions would not mean the same samples any more.
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

// data returns the Data of a file.
func (s *Folder) data(f folder, e entry) (d source.Data) {
	switch {
	// A pipe or device with the name of an image: reading it would wait forever.
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

// labeled is the Data of an image whose second field is its class number.
type labeled struct {
	file  source.Data
	label int64
}

// Read implements Data.
func (l labeled) Read(v *source.Values) error {
	source.PutInt(v, 1, l.label)
	return l.file.Read(v)
}

// ReadField implements source.Parted: the class is known without reading the file.
func (l labeled) ReadField(v *source.Values, field int) bool {
	if field == 1 {
		source.PutInt(v, 1, l.label)
	}
	return field == 1
}
