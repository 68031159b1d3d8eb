// Package h5pack makes the chunks of compressed HDF5 datasets: whole records, shuffled if that
// helps, deflated. They are what H5Dwrite_chunk takes; many goroutines can make them, which
// libhdf5, that runs one call at a time, cannot.
//
//	r := h5pack.Recipe{Record: 150528, Elem: 1, Records: h5pack.ChunkRecords(n, 150528), Level: 6}
//	c, err := h5pack.Choose(r, h5pack.Auto, sample) // shuffle or not, and why; the ratio to expect
//	e, err := h5pack.NewEncoder(c.Recipe)           // one a goroutine
//	chunk, mask, err := e.Encode(records)
//
// Without tags, deflate is that of github.com/klauspost/compress. With -tags libdeflate (and
// cgo) it is libdeflate's, whose chunks are somewhat smaller. So the same records give the same
// bytes for one Backend only.
package h5pack
