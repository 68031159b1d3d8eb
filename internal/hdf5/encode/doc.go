// Package encode makes HDF5 files without libhdf5: their metadata, and the chunks of compressed
// datasets.
//
// File encodes the metadata of a set of Objects. Their elements are where the caller writes them:
// in the same file, in chunks of it, or in other files.
//
// A chunk has whole records, shuffled if that helps, deflated. H5Dwrite_chunk accepts it as it is;
// many goroutines can make chunks at once, while libhdf5 runs one call at a time.
//
//	r := encode.Recipe{Record: 150528, Elem: 1, Records: encode.ChunkRecords(n, 150528), Level: 6}
//	c, err := encode.Choose(r, encode.Auto, sample) // shuffle or not, and why; the ratio to expect
//	e, err := encode.NewEncoder(c.Recipe)           // one a goroutine
//	chunk, mask, err := e.Encode(records)
//
// Without tags, github.com/klauspost/compress deflates. With -tags libdeflate (and cgo) it is libdeflate's, whose
// chunks are somewhat smaller. So the same records give the same bytes for one Backend only.
package encode
