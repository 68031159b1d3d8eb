// Package hdf5 writes a dataset as one HDF5 file: with cgo by libhdf5, through gonum.org/v1/hdf5,
// and without it by penstock's encoder. Both files have the same objects, types, attributes,
// records and alignment. h5py, h5dump and h5ls see:
//
//	/images                     [n, ...record shape], contiguous, starting at a multiple of 4096
//	    layout                  "NCHW" or "NHWC"
//	    mean, std, scale        (x/scale - mean[c]) / std[c]
//	    normalization_applied   whether the stored values went through it already
//	/labels                     [n]
//	    class_names             names of the values 0, 1, ...
//	/tokens/values              a ragged field: the rows of all records
//	/tokens/offsets             [n+1]: record i is values[offsets[i]:offsets[i+1]]
//	/penstock/manifest          store.Manifest as JSON
//	/penstock/crc/images        CRC32C of blocks of layout.BlockRecords rows
//	/                           format, format_version, num_samples, complete
//
// The root has one dataset a field and nothing else, so that code which goes through all of
// them finds what it trains on; the metadata is in a group of its own.
//
// Types are little endian. A bool is h5py's bool (an enumeration over int8), float16 is
// IEEE binary16, bfloat16 is uint16 bits with an attribute dtype = "bfloat16". All strings
// are UTF-8 of fixed length, padded with zeros (h5py gives bytes: numpy.char.decode makes
// them str), because corrupt variable-length ones make libhdf5 hang. An attribute of more
// than 60,000 bytes, which an object header cannot hold, is the dataset
// /penstock/ATTRIBUTE/FIELD instead.
//
// Records are written by pwrite at their offsets, while libhdf5 does not have the file open; where the lengths of the
// columns are not known before the last record, they wait in .npy files. So writing goes at the speed of the disk, and
// no record passes through the library.
//
// With Options.Compress, the arrays that make up most of the bytes are not contiguous but in
// chunks of whole records, which go through gzip, and through shuffle where that helps. Several
// goroutines deflate; libhdf5 or the encoder only stores what they made. All else holds for such a file, too:
// checksums, identity, splits, appends, resumed builds, and that it is the same for any number
// of goroutines.
//
// All calls into libhdf5 come from one goroutine. Its output of errors on stderr and its exit
// handler are switched off, so other users of libhdf5 in the same process have to close their
// files themselves, as they have to in any Go program.
//
// With cgo the package needs libhdf5 1.10.3 or newer and its headers. Without cgo it needs
// nothing, on any system. The same records give the same bytes in builds of one kind. The
// writer that began a file continues it, libhdf5 or the encoder: a program with cgo has both, and one
// without says that it cannot continue a file of libhdf5. Reading needs no C in either: see package mmapds.
package hdf5
