// Package encode makes HDF5 files without libhdf5: their metadata, and the chunks of compressed
// datasets. What a file says follows the HDF5 File Format Specification 3.0, restricted to the
// structures that libhdf5 reads since version 1.8.
//
// An Object is a dataset that a file shall have. The caller writes its elements wherever they go:
// into the same file, in one piece or in chunks, or into other files. It then has File encode the
// metadata of all Objects, which are the end of the file and its first 48 bytes. So a file becomes
// valid with the last write, and a crash before that leaves a file that is not HDF5.
//
// An Encoder makes chunks: whole records, shuffled if that helps, and deflated. libhdf5's
// H5Dwrite_chunk takes them as they are. Many goroutines can make chunks at once, each with an
// Encoder, while libhdf5 runs one call at a time. A Recipe says how chunks are made, and Choose
// finds one for a sample.
//
//	r := encode.Recipe{Record: 150528, Elem: 1, Records: encode.ChunkRecords(n, 150528), Level: 6}
//	c, err := encode.Choose(r, encode.Auto, sample) // shuffle or not, and why; the ratio to expect
//	e, err := encode.NewEncoder(c.Recipe)           // one a goroutine
//	chunk, mask, err := e.Encode(records)
//
// Without build tags, github.com/klauspost/compress deflates. With -tags libdeflate (and cgo)
// libdeflate does, whose chunks are somewhat smaller. So the same records give the same bytes only
// with the same Backend.
package encode
