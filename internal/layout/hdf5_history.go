package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/suggest"
)

// HDF5Generations is the dataset of an HDF5 file that was changed with its HDF5History, as JSON.
const HDF5Generations = "/penstock/generations"

// Sizes of superblocks: the first bytes of a file that a change replaces.
const (
	oldHDF5Head = 96 // of versions 0 and 1, without the latter's B-tree sizes, which penstock never writes
	HDF5Head    = 48 // of versions 2 and 3
)

// HDF5Seal begins the last HDF5SealBytes bytes of a file of penstock, and of each of its generations: the checksum of
// its metadata, see package store/hdf5/seal.
const (
	HDF5Seal      = "penstock"
	HDF5SealBytes = 16
)

// HDF5History is the earlier generations that an HDF5 file keeps, and all tags.
type HDF5History struct {
	Newest      int              `json:"newest"` // the generation of the file's own superblock
	Generations []HDF5Generation `json:"generations"`
	Tags        []HDF5Tag        `json:"tags,omitempty"`
}

// HDF5Generation is where an earlier generation begins: the Head and the file, cut to Size bytes, are the file
// as it was then.
type HDF5Generation struct {
	Generation int       `json:"generation"`
	Head       []byte    `json:"head"`
	Size       int64     `json:"size"`
	Time       time.Time `json:"time"` // of the commit
}

// HDF5Tag is a name of a generation.
type HDF5Tag struct {
	Name       string `json:"name"`
	Generation int    `json:"generation"`
	ID         string `json:"id"`
}

// maxHDF5Text bounds the memory that the history of a file, or its manifest, can take.
const maxHDF5Text = 1 << 30

// HDF5Text returns the content of a dataset that is one string.
func HDF5Text(file *meta.File, path string) ([]byte, error) {
	data, err := file.Dataset(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	v, err := data.Value(maxHDF5Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, ok := v.Text()
	if !ok {
		return nil, fmt.Errorf("%s is not a text: %w", path, ErrCorrupt)
	}
	return []byte(text), nil
}

// ReadHDF5History returns the history of a file that penstock wrote: of one that was never changed, its only
// generation. A file without a manifest is fs.ErrNotExist.
func ReadHDF5History(file *meta.File) (h HDF5History, err error) {
	manifest, err := HDF5Text(file, HDF5Manifest)
	if err != nil {
		return h, err
	}
	text, err := HDF5Text(file, HDF5Generations)
	if errors.Is(err, fs.ErrNotExist) {
		var m struct{ Generation int }
		if err := json.Unmarshal(manifest, &m); err != nil {
			return h, fmt.Errorf("%s: %w: %w", HDF5Manifest, err, ErrCorrupt)
		}
		return HDF5History{Newest: m.Generation}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return h, fmt.Errorf("%s: %w: %w", HDF5Generations, err, ErrCorrupt)
	}
	for _, g := range h.Generations {
		n := len(g.Head)
		if g.Generation < 1 || g.Generation >= h.Newest || n != HDF5Head && n != oldHDF5Head ||
			g.Size < int64(n+HDF5SealBytes) {
			return h, fmt.Errorf("%s: generation %d: %w", HDF5Generations, g.Generation, ErrCorrupt)
		}
	}
	return h, nil
}

// Numbers returns the generations in ascending order.
func (h *HDF5History) Numbers() []int {
	numbers := []int{h.Newest}
	for _, g := range h.Generations {
		numbers = append(numbers, g.Generation)
	}
	slices.Sort(numbers)
	return numbers
}

// Find returns an earlier generation, nil if the file does not keep it.
func (h *HDF5History) Find(generation int) *HDF5Generation {
	for i := range h.Generations {
		if h.Generations[i].Generation == generation {
			return &h.Generations[i]
		}
	}
	return nil
}

// Number resolves the name of a generation: digits, or a tag.
func (h *HDF5History) Number(generation string) (int, error) {
	if n, err := strconv.Atoi(generation); err == nil {
		return n, nil
	}
	var names []string
	for _, t := range h.Tags {
		if t.Name == generation {
			return t.Generation, nil
		}
		names = append(names, t.Name)
	}
	return 0, fmt.Errorf("it has no tag %q%s: %w", generation, suggest.Hint(generation, names), fs.ErrNotExist)
}

// HDF5File is a generation of an HDF5 file: its metadata, and the bytes that it was read from.
type HDF5File struct {
	*meta.File
	Bytes io.ReaderAt
}

// OpenHDF5Generation reads the metadata of a file of size bytes as they are in a generation, by its number or a tag; ""
// is the newest one, and the only one that other files have than those of penstock. A generation that is not kept is
// fs.ErrNotExist.
func OpenHDF5Generation(f io.ReaderAt, size int64, generation string) (*HDF5File, error) {
	file, err := meta.Open(f, size)
	if err != nil || generation == "" {
		return &HDF5File{file, f}, err
	}
	h, err := ReadHDF5History(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("penstock did not write it, so it has no generations: %w", ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	n, err := h.Number(generation)
	if err != nil {
		return nil, err
	}
	if n == h.Newest {
		return &HDF5File{file, f}, nil
	}
	g := h.Find(n)
	if g == nil || g.Size > size {
		return nil, fmt.Errorf("it keeps no generation %d; it has %s: %w", n, joined(h.Numbers()), fs.ErrNotExist)
	}
	then := HDF5With(f, g.Head)
	var end [len(HDF5Seal)]byte
	if _, err := then.ReadAt(end[:], g.Size-HDF5SealBytes); err != nil {
		return nil, err
	}
	if string(end[:]) != HDF5Seal {
		return nil, fmt.Errorf("another program has rewritten the file, which has its newest generation only: %w",
			ErrCorrupt)
	}
	file, err = meta.Open(then, g.Size)
	return &HDF5File{file, then}, err
}

// joined writes numbers in ascending order: 1, 3 to 7, 9.
func joined(numbers []int) string {
	var words []string
	for i := 0; i < len(numbers); {
		first := i
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; i++ {
		}
		word := strconv.Itoa(numbers[first])
		if i-first > 2 {
			word += " to " + strconv.Itoa(numbers[i-1])
		} else if i-first == 2 {
			word += ", " + strconv.Itoa(numbers[i-1])
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// HDF5With returns a file whose first bytes are replaced.
func HDF5With(file io.ReaderAt, head []byte) io.ReaderAt { return withHead{file, head} }

type withHead struct {
	io.ReaderAt
	head []byte
}

func (h withHead) ReadAt(b []byte, off int64) (int, error) {
	n, err := h.ReaderAt.ReadAt(b, off)
	if off < int64(len(h.head)) {
		copy(b[:n], h.head[off:])
	}
	return n, err
}

// HDF5HeadOf returns how many bytes of a file its superblock has. A file whose superblock cannot be replaced, as there
// is a user block or more than one block, is ErrUnsupported: penstock writes none.
func HDF5HeadOf(file *meta.File) (int, error) {
	sb := file.Superblock
	if sb.Offset != 0 || sb.OffsetSize != 8 || sb.LengthSize != 8 || sb.Version == 1 || sb.Extended() {
		return 0, fmt.Errorf("its superblock is one that penstock does not write: %w", ErrUnsupported)
	}
	if sb.Version == 0 {
		return oldHDF5Head, nil
	}
	return HDF5Head, nil
}
