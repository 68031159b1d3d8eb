package mirror

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/hdf5/meta"
	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// contents lists the parts of an HDF5 file that are fetched when they are needed; Open fetches all other parts.
type contents struct {
	file   *meta.File
	plain  []part            // large arrays that can be mapped; tidy
	packed []part            // chunks of large arrays, and pieces of large arrays that cannot be mapped; tidy
	chunks map[string][]part // the parts in packed by path of the array, in the order of the array
	known  []part            // other parts that something in the file refers to; tidy
}

// smallParts is the largest number of parts of an array that is fetched with the metadata. Such an array also has less
// than metadataPiece bytes.
const smallParts = 64

// contents reads the metadata of an HDF5 file and decides for each array how it is fetched.
// Overlapping arrays are refused: a block that is fetched and checked for one array would overwrite
// bytes of the other.
func (op *opener) contents(r io.ReaderAt, size int64) (*contents, error) {
	file, err := meta.Open(r, size)
	if errors.Is(err, meta.ErrNotHDF5) {
		err = fmt.Errorf("neither a folder with a manifest nor an HDF5 file: %w", store.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	c := &contents{file: file, chunks: make(map[string][]part)}
	for data := range file.All() {
		if err := c.add(data, size, op.wants(data.Path)); err != nil {
			return nil, err
		}
	}
	for _, e := range file.Extents() {
		c.known = append(c.known, part{e.Offset, e.Size})
	}
	c.plain, c.packed, c.known = tidy(c.plain, 0), tidy(c.packed, 0), tidy(c.known, 0)
	if i := slices.IndexFunc(c.packed, func(p part) bool { return touches(p, c.plain) }); i >= 0 {
		return nil, fmt.Errorf("chunks at byte %d (%d bytes) lie in another dataset: %w", c.packed[i].off, c.packed[i].n,
			store.ErrCorrupt)
	}
	return c, nil
}

// wants reports whether an array may belong to a field that is opened.
func (op *opener) wants(path string) bool {
	name := strings.TrimPrefix(path, "/")
	return op.cache.opts.Fields == nil || slices.ContainsFunc(op.cache.opts.Fields, func(f string) bool {
		return name == f || strings.HasPrefix(name, f+"/")
	})
}

// add decides how the elements of a dataset of an HDF5 file are fetched. Large contiguous arrays that can be mapped
// stay in place in a sparse copy of the file, and are fetched block by block; chunks and arrays that must be converted
// are fetched packed; everything small counts as metadata and comes with it.
func (c *contents) add(data *meta.Dataset, size int64, wanted bool) error {
	l := &data.Layout
	if data.Err != nil || len(data.External) > 0 || isMetadata(data.Path) {
		return nil
	}
	numbers := len(data.Dims) > 0 && !data.Null && data.Type.DType() != tensor.Invalid
	payload := numbers || !wanted // an array that is not wanted is never read, whatever its type
	if l.Kind == meta.Chunked {
		return c.addChunks(data, payload, wanted)
	}
	if l.Kind != meta.Contiguous || l.Size < metadataPiece || l.Offset < 0 || !payload {
		return nil
	}
	if err := layout.Inside(l.Offset, l.Size, size); err != nil {
		return fmt.Errorf("dataset %q: %w", data.Path, err)
	}
	all := part{l.Offset, l.Size}
	if data.Mappable() == nil && data.Aligned() {
		c.plain = append(c.plain, all)
		return nil
	}
	c.pack(data.Path, pieces([]part{all}, blockBytes))
	return nil
}

// addChunks adds the chunks of an array. An index that cannot be read is no error for an array that is not wanted.
func (c *contents) addChunks(data *meta.Dataset, payload, wanted bool) error {
	table, err := data.Chunks()
	if !wanted && (errors.Is(err, meta.ErrCorrupt) || errors.Is(err, meta.ErrUnsupported)) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range table.Index {
		c.known = append(c.known, part{e.Offset, e.Size})
	}
	list := make([]part, len(table.Chunks))
	for i, x := range table.Chunks {
		list[i] = part{x.Offset, x.Size}
	}
	runs := tidy(slices.Clone(list), gapBytes)
	if !payload || total(list) < metadataPiece && len(runs) <= smallParts {
		c.known = append(c.known, list...)
		return nil
	}
	c.pack(data.Path, list)
	return nil
}

// pack adds an array that is fetched in parts of the file, in the order of the array.
func (c *contents) pack(path string, list []part) {
	c.chunks[path] = list
	c.packed = append(c.packed, list...)
}

// strayBytes is the largest gap between two payloads that counts as unused if nothing refers to it: chunks that are
// aligned have such gaps.
const strayBytes = 4 << 10

// metadata returns the parts that Open fetches: everything but the payloads and the gaps between them. Parts in have
// are fetched already and may hold metadata, so a gap that touches one is kept.
func (c *contents) metadata(have []part, size int64) []part {
	payloads := tidy(slices.Concat(c.plain, c.packed), 0)
	rest := minus([]part{{0, size}}, payloads)
	return slices.DeleteFunc(rest, func(p part) bool {
		return p.n < strayBytes && p.off > 0 && p.end() < size && !touches(p, c.known) && !touches(p, have)
	})
}

// isMetadata reports whether a path is an object of a penstock dataset other than its records.
func isMetadata(path string) bool { return strings.HasPrefix(path, "/penstock/") }
