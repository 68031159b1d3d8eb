// Package meta reads the metadata of HDF5 files: the tree of groups and datasets, shapes,
// types, layouts, filters, fill values and attributes. It is pure Go, reads through an
// io.ReaderAt and trusts nothing in the file: every extent is checked against the true
// size, every checksum is verified, and work and memory are bounded by the size of the
// file. A corrupt or truncated file is an error, never a fault.
//
//	f, err := meta.Open(r, size)              // reads all metadata, no elements
//	f.Superblock, f.Size, f.Extents()           // version, user block, end; where each part is
//	f.Root                                      // *Group: Path, Attrs, Links, HeaderAt, HeaderSize
//	for l := range f.Walk() { ... }             // every *Link: Kind and Group, Dataset, Type, Target, Loop, Err
//	f.Datasets(), f.All()                       // every *Dataset, in name order
//	d, err := f.Dataset("/train/images")        // one, also over soft links; f.Lookup for any *Link
//
// A Dataset has Path, Dims, MaxDims, Null (its Dataspace), Type, Layout, Filters, Fill,
// External, Attrs and Err, which is set if a part of it is valid but not read here.
//
//	d.Mappable()                                // nil, or why the bytes cannot be used in place
//	d.Layout.Offset, d.Layout.Size, d.Aligned() // the bytes, counted from the start of the file
//	d.Spec()                                    // tensor.Spec of one record, Dims[0] being the records
//	d.Type.DType(), d.Type.String()             // "bool", "big-endian float32", "string[6] ascii", ...
//	d.Value(limit)                              // the elements of a small dataset
//	d.Chunks()                                  // *ChunkTable: Chunks with Offset, Size, Mask, Coord; At(coord...)
//	d.Sources()                                 // the sources of a virtual dataset
//	d.Remedy("old.h5", "new.h5")                // the command that rewrites what package chunk does not read
//
// Attributes have a Value, which gives Strings, Text, Ints, Int, Floats, Float, or Any.
//
//	if a, ok := d.Attrs.Get("layout"); ok {
//		text, ok := a.Value.Text()
//	}
//
// Read are superblocks 0 to 3, object headers 1 and 2 with continuations, groups with
// symbol tables, compact links and dense links, compact and dense attributes, committed
// datatypes, shared message tables, all layouts and all chunk indexes. Named, but not read
// further, are external files, virtual datasets, and values of compound, reference, opaque
// and variable-length types other than strings. Refused are files of the family and multi
// drivers. Filters are named, not undone.
//
// A remote source can learn in advance what will be read: see Announcer.
//
// The format is described in the HDF5 File Format Specification, version 3.0 (The HDF
// Group); if it is silent, the comments say what libhdf5 does.
package meta
