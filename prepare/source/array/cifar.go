package array

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// cifarPixels is the size of an image in bytes: 3 planes of 32 rows of 32 pixels.
const cifarPixels = 3 * 32 * 32

// OpenCIFAR opens the binary version of CIFAR-10 or CIFAR-100: one file, or the folder, where the training files
// and the test file are splits. https://www.cs.toronto.edu/~kriz/cifar.html
func OpenCIFAR(ctx context.Context, root *vfs.Root, path string, _ source.Options, selection []column.Selection) (
	source.Source, error) {
	files, err := cifarFiles(root, path)
	if err != nil {
		return nil, err
	}
	names, err := cifarNames(root, filepath.Dir(files[0]))
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	parts, open, err := openCIFARParts(ctx, root, files, names.record())
	if err != nil {
		source.CloseFiles(open)
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	columns, err := Select(names.columns(parts), selection)
	if err != nil {
		source.CloseFiles(open)
		return nil, err
	}
	s, err := New("cifar", path, source.BaseName(path), columns, append(open, root)...)
	if splits := cifarSplits(files, parts.counts); err == nil && splits != nil {
		return source.NewSplitSource(s, splits), nil
	}
	return s, err
}

// cifarSplits returns the splits of files with so many records each; nil unless there are files of both splits.
func cifarSplits(files []string, counts []int64) []store.Split {
	train, test := store.Split{Name: "train"}, store.Split{Name: "test"}
	at := int64(0)
	for i, name := range files {
		s := &train
		if cifarTests[filepath.Base(name)] {
			s = &test
		}
		s.Ranges = append(s.Ranges, [2]int64{at, at + counts[i]})
		at += counts[i]
	}
	if train.Ranges == nil || test.Ranges == nil {
		return nil
	}
	return []store.Split{train, test}
}

// cifarTests are the names of the test files.
var cifarTests = map[string]bool{"test_batch.bin": true, "test.bin": true}

// cifarFiles returns the files of path in the order of their records.
func cifarFiles(root *vfs.Root, path string) ([]string, error) {
	files, err := source.Files(path)
	if err != nil {
		return nil, err
	}
	// Several files of a glob are read in their order, and without splits unless both kinds are among them.
	if info, err := root.Stat(files[0]); err != nil || !info.IsDir() {
		return files, err
	}
	dir := files[0]
	for _, names := range [][]string{{"data_batch_*.bin", "test_batch.bin"}, {"train.bin", "test.bin"}} {
		var found []string
		for _, name := range names {
			found = append(found, root.Glob(dir, name)...)
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("source %s: the folder holds none of data_batch_*.bin, test_batch.bin, train.bin and "+
		"test.bin; give the file that is meant", path)
}

// cifarClasses has the class names. coarse is nil for CIFAR-10, and decides the size of records.
type cifarClasses struct{ fine, coarse []string }

// cifarNames reads the class names from the text files next to the data, whose names tell CIFAR-100 from CIFAR-10.
// Without such a file it assumes CIFAR-10 with unnamed classes.
func cifarNames(root *vfs.Root, dir string) (c cifarClasses, err error) {
	if c.fine, err = cifarLines(root, filepath.Join(dir, "fine_label_names.txt")); err != nil || c.fine != nil {
		if err == nil {
			c.coarse, err = cifarLines(root, filepath.Join(dir, "coarse_label_names.txt"))
		}
		if err == nil && c.coarse == nil {
			err = errors.New("there is a fine_label_names.txt but no coarse_label_names.txt")
		}
		return c, err
	}
	c.fine, err = cifarLines(root, filepath.Join(dir, "batches.meta.txt"))
	return c, err
}

// cifarLines returns the non-empty lines of a file, nil if the file does not exist.
func cifarLines(root *vfs.Root, path string) (list []string, err error) {
	text, err := root.ReadFile(path, nil, source.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), source.WithoutPath(err))
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list, nil
}

// record returns the size of a record in bytes: one label or two, then the image.
func (c cifarClasses) record() int {
	if c.coarse != nil {
		return 2 + cifarPixels
	}
	return 1 + cifarPixels
}

// columns returns the columns of images and labels. A record of CIFAR-100 has the coarse label before the fine one;
// the field labels has the fine ones, as in torchvision.
func (c cifarClasses) columns(p *cifarParts) []Column {
	images := source.NumberField(source.ImagesName, tensor.Uint8, 3, 32, 32)
	images.Layout = tensor.CHW
	list := []Column{p.column(images, c.record()-cifarPixels, cifarPixels, nil)}
	label := func(name string, at int, classes []string) {
		list = append(list, p.column(source.LabelField(name, classes), at, 1, Widened))
	}
	if c.coarse != nil {
		label(source.LabelsName, 1, c.fine)
		label("coarse_labels", 0, c.coarse)
		return list
	}
	label(source.LabelsName, 0, c.fine)
	return list
}

// cifarParts is several files of records of one size, read as one sequence.
type cifarParts struct {
	files  []vfs.File
	counts []int64
	total  int64
	record int
}

// openCIFARParts opens the files, each of which must have whole records. The caller closes the files in open, also
// with an error.
func openCIFARParts(ctx context.Context, root *vfs.Root, names []string, record int) (p *cifarParts, open []io.Closer,
	err error) {
	p = &cifarParts{record: record}
	for _, name := range names {
		f, size, err := source.OpenSized(ctx, root, name)
		if err != nil {
			return nil, open, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		open = append(open, f)
		n := size / int64(record)
		if n*int64(record) != size || n == 0 {
			return nil, open, fmt.Errorf("%s: %d bytes are not whole records of %d, as CIFAR's binary files are; if it is "+
				"something else, name its kind, such as --from tokens", filepath.Base(name), size, record)
		}
		p.files, p.counts, p.total = append(p.files, f), append(p.counts, n), p.total+n
	}
	return p, open, nil
}

// column returns the column of the size bytes at position place of each record.
func (p *cifarParts) column(field source.Field, place, size int, convert func([]byte) []byte) Column {
	field.Origin = field.Name
	at := func(i int64, buf []byte) ([]byte, error) {
		file := 0
		for ; i >= p.counts[file]; file++ {
			i -= p.counts[file]
		}
		buf = slices.Grow(buf, size)[:size]
		err := source.ReadAt(p.files[file], buf, i*int64(p.record)+int64(place))
		if err == nil && convert != nil {
			buf = convert(buf)
		}
		return buf, err
	}
	return Column{Field: field, Count: p.total, At: at, Open: func() (Cursor, error) { return CursorAt(at, p.total), nil }}
}
